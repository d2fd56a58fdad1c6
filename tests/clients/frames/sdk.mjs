// Two agents on openai-node's WebSocket of the Responses API: one with a tool, streamed; one that asks once.
//   sdk.mjs BASE_OF_PLANNER BASE_OF_CRITIC      prints what each was sent, a JSON line a message

import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

const [, , PLANNER, CRITIC] = process.argv;
const TOOL = { type: "function", name: "calculator", parameters: { type: "object", properties: { expression: { type: "string" } } } };
const ENDS = ["response.completed", "response.incomplete", "response.failed"];

/** Asks in turn, each time with what the last response makes of it, until nothing more is to be asked. */
async function converse(who, baseURL, next) {
  const socket = new ResponsesWS(new OpenAI({ baseURL, apiKey: "sk-none" }));
  let asked = next(undefined);
  socket.send(asked);
  for await (const event of socket) {
    if (event.type === "error") throw event.error;
    if (event.type !== "message") continue;
    console.log(JSON.stringify({ agent: who, message: JSON.stringify(event.message) }));
    if (!ENDS.includes(event.message.type)) continue;
    asked = next(event.message.response);
    if (asked === undefined) break;
    socket.send(asked);
  }
  socket.close();
}

const ask = (body) => ({ type: "response.create", model: "gpt-5-mini", ...body });

await converse("planner", PLANNER, (response) => {
  if (response === undefined) return ask({ input: [{ role: "user", content: "How many pencils are 12 boxes of 8? É" }], tools: [TOOL] });
  const called = response.output.find((item) => item.type === "function_call");
  if (called === undefined) return undefined;
  const output = String(Function(`return ${JSON.parse(called.arguments).expression}`)());
  return ask({ input: [{ type: "function_call_output", call_id: called.call_id, output }], tools: [TOOL], previous_response_id: response.id });
});
await converse("critic", CRITIC, (response) => (response === undefined ? ask({ input: "Is it right?" }) : undefined));
