// Three equal voters at once on openai-node as it comes.

import { OpenAI } from "openai-6";

const sdk = new OpenAI();
const messages = [{ role: "user", content: "A box holds 6 eggs. How many eggs do 7 boxes hold?" }];
const vote = async () => (await sdk.chat.completions.create({ model: "gpt-4o-mini", messages })).choices[0].message.content;
console.log("votes:", await Promise.all([vote(), vote(), vote()]));
