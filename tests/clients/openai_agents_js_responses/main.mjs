// OpenAI Agents (JS) on the Responses API: a triage agent hands off to a solver, streamed; a verifier fills a form.

import { Agent, run, tool } from "@openai/agents";
import { z } from "zod";

const PROBLEM = "A shop gets 13 boxes with 48 pens each. It sells 96 pens. How many pens does the shop have left?";
const model = "gpt-5-mini";

const calculator = tool({
  name: "calculator",
  description: "Evaluate an arithmetic expression such as 3 * (4 + 5).",
  parameters: z.object({ expression: z.string() }),
  execute: async ({ expression }) => {
    if (!/^[\d\s.+*/()-]+$/.test(expression)) return `error: \`${expression}\` is not arithmetic`;
    return String(Function(`return (${expression})`)());
  },
});
const solver = new Agent({
  name: "Solver",
  model,
  handoffDescription: "Solves arithmetic word problems.",
  instructions: "You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
  tools: [calculator],
});
const poet = new Agent({
  name: "Poet",
  model,
  handoffDescription: "Writes short poems.",
  instructions: "You write short poems.",
});
const triage = Agent.create({
  name: "Triage",
  model,
  instructions: "You are a triage agent. Hand the user's request off to the agent that fits it.",
  handoffs: [solver, poet],
});
const verifier = new Agent({
  name: "Verifier",
  model,
  instructions: "You verify the solution of a word problem.",
  outputType: z.object({ verdict: z.enum(["correct", "incorrect"]), feedback: z.string() }),
});

const problem = process.argv[2] ?? PROBLEM;
const stream = await run(triage, problem, { stream: true });
for await (const event of stream) {
  if (event.type === "agent_updated_stream_event") console.log("now:", event.agent.name);
}
await stream.completed;
const answer = String(stream.finalOutput);
console.log(`${stream.lastAgent?.name}: ${answer}`);
const judged = await run(verifier, `Problem: ${problem}\nSolution: ${answer}`);
console.log("Verifier:", judged.finalOutput.verdict, judged.finalOutput.feedback);
console.log("FINAL:", answer.replaceAll(",", "").match(/-?\d+(?:\.\d+)?/g)?.at(-1) ?? "none");
