// AI SDK on the Responses API, which its OpenAI provider speaks by default: a solver with a tool, streamed; then a
// reviewer on Anthropic Messages that reads the solver's words.

import { createAnthropic } from "@ai-sdk/anthropic";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const PROBLEM = "A hall has 17 rows with 28 seats each. 64 seats are taken out. How many seats remain?";
// The provider's base URL ends with the version, the variable does not.
const anthropic = createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });

const calculator = tool({
  description: "Evaluate an arithmetic expression such as 3 * (4 + 5).",
  inputSchema: z.object({ expression: z.string() }),
  execute: async ({ expression }) => {
    if (!/^[\d\s.+*/()-]+$/.test(expression)) return `error: \`${expression}\` is not arithmetic`;
    return String(Function(`return (${expression})`)());
  },
});

const problem = process.argv[2] ?? PROBLEM;
const solved = streamText({
  model: openai("gpt-5-mini"),
  system: "You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
  prompt: problem,
  tools: { calculator },
  stopWhen: stepCountIs(5),
});
for await (const _ of solved.textStream);
const answer = await solved.text;
console.log("solver:", answer);
const judged = await generateText({
  model: anthropic("claude-sonnet-4-5"),
  system: "You verify the solution of a word problem. Say whether it is correct or incorrect.",
  prompt: `Problem: ${problem}\nSolution: ${answer}`,
});
console.log("reviewer:", judged.text);
console.log("FINAL:", answer.replaceAll(",", "").match(/-?\d+(?:\.\d+)?/g)?.at(-1) ?? "none");
