// Mastra on the Responses API: a solver with a tool, streamed, then a reviewer.

import { openai } from "ai-openai-2";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const PROBLEM = "A gym buys 12 sets with 37 weights each. 58 weights are sold. How many weights remain?";
const model = openai("gpt-5-mini");

const calculator = createTool({
  id: "calculator",
  description: "Evaluate an arithmetic expression such as 3 * (4 + 5).",
  inputSchema: z.object({ expression: z.string() }),
  execute: async (input) => {
    const { expression } = input.context ?? input;
    if (!/^[\d\s.+*/()-]+$/.test(expression)) return `error: \`${expression}\` is not arithmetic`;
    return String(Function(`return (${expression})`)());
  },
});
const solver = new Agent({
  id: "solver",
  name: "solver",
  instructions: "You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
  model,
  tools: { calculator },
});
const reviewer = new Agent({
  id: "reviewer",
  name: "reviewer",
  instructions: "You verify the solution of a word problem. Say whether it is correct or incorrect.",
  model,
});

const problem = process.argv[2] ?? PROBLEM;
const stream = await solver.stream(problem);
for await (const _ of stream.textStream);
const answer = await stream.text;
console.log("solver:", answer);
const judged = await reviewer.generate(`Problem: ${problem}\nSolution: ${answer}`);
console.log("reviewer:", judged.text);
console.log("FINAL:", answer.replaceAll(",", "").match(/-?\d+(?:\.\d+)?/g)?.at(-1) ?? "none");
