// AI SDK on chat completions: a planner, two reviewers at once that differ by one word, and a writer that streams.
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
const model = openai.chat("gpt-4o-mini");
const calculator = tool({
  description: "Evaluate an arithmetic expression",
  inputSchema: z.object({ expression: z.string() }),
  execute: async ({ expression }) => (/^[\d\s.+*/()-]+$/.test(expression) ? String(eval(expression)) : "not arithmetic"),
});

async function main(problem) {
  const solved = await generateText({
    model,
    system: "You solve word problems with the calculator. End with a line `ANSWER: <number>`.",
    prompt: problem,
    tools: { calculator },
    stopWhen: stepCountIs(4),
  });
  const review = (what) =>
    generateText({ model, system: `You review the ${what} of a solution. Be brief.`, prompt: `${problem}\n${solved.text}` });
  const [units, sums] = await Promise.all([review("units"), review("sums")]);
  const report = streamText({
    model,
    system: "You report the result in one line.",
    prompt: `${solved.text}\n\n${units.text}\n\n${sums.text}`,
  });
  let said = "";
  for await (const piece of report.textStream) said += piece;
  console.log("FINAL:", said);
}

await main(process.argv[2] ?? PROBLEM);
