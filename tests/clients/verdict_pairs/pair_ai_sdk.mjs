// Three equal voters at once on the AI SDK as it comes.

import { openai } from "@ai-sdk/openai";
import { generateText } from "ai";

const prompt = "A box holds 6 eggs. How many eggs do 7 boxes hold?";
const vote = async () => (await generateText({ model: openai.chat("gpt-4o-mini"), prompt })).text;
console.log("votes:", await Promise.all([vote(), vote(), vote()]));
