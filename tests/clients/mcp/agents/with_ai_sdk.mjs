// Vercel's AI SDK with its MCP client: two agents that share one connection. What the Python programs share in `crew.py` is written out.

import { readFileSync } from "node:fs";
import { createMCPClient } from "@ai-sdk/mcp";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const TASKS = JSON.parse(readFileSync(process.argv[2], "utf8"));
const model = openai.chat("scripted");
const client = await createMCPClient({ transport: { type: "http", url: process.env.AEGIS_MCP_CALC } });
const tools = await client.tools();

// The tools, which say that this agent calls them.
function told(agent) {
  const said = ([name, tool]) => {
    const execute = (args, options) => {
      console.log(JSON.stringify({ agent, tool: name, arguments: args }));
      return tool.execute(args, options);
    };
    return [name, { ...tool, execute }];
  };
  return Object.fromEntries(Object.entries(tools).map(said));
}

const agents = Object.fromEntries(["clerk", "driver"].map((name) => [name, told(name)]));
const work = ([name, rounds]) =>
  generateText({
    model,
    system: `You are the ${name}. You do what you are told with the tools.`,
    prompt: `Round by round, call: ${JSON.stringify(rounds)}`,
    tools: agents[name],
    stopWhen: stepCountIs(9),
  });
for (const tasks of Object.values(TASKS)) await Promise.all(Object.entries(tasks).map(work));
await client.close();
console.log("FINAL: done");
process.exit(0);
