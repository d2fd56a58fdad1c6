// What the AI SDK reads of each shape, unedited and under each edit. The same as `sdk_python/shapes.py`.
//
// Called with one JSON argument: `proxy` (its address), `shapes` (number, API, whether it is asked for as a stream) and
// `agents` (the agents of a run, in order). Prints one JSON line per call: what the answer says, or the error.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";

globalThis.AI_SDK_LOG_WARNINGS = false;
const ASKED = JSON.parse(process.argv[2]);
const city = { type: "object", properties: { city: { type: "string" } } };
const offered = () => tool({ description: "Looks it up.", inputSchema: jsonSchema(city) });
const tools = { get_weather: offered(), get_time: offered(), get_rain: offered() };

const MODELS = {
  openai_chat: (at, name) => createOpenAI({ baseURL: `${at}/v1`, apiKey: "sk-client-tests" }).chat(name),
  openai_responses: (at, name) => createOpenAI({ baseURL: `${at}/v1`, apiKey: "sk-client-tests" }).responses(name),
  openai_completions: (at, name) => createOpenAI({ baseURL: `${at}/v1`, apiKey: "sk-client-tests" }).completion(name),
  anthropic_messages: (at, name) => createAnthropic({ baseURL: `${at}/v1`, apiKey: "sk-client-tests" })(name),
};

async function ask(model, api, stream) {
  const more = api === "openai_completions" ? {} : { tools };
  const asked = { model, prompt: "How many towers?", maxRetries: 0, ...more };
  if (!stream) {
    const { content } = await generateText(asked);
    return said(content);
  }
  const parts = [];
  const texts = new Map();
  for await (const part of streamText({ ...asked, onError: () => {} }).fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") texts.set(part.id, (texts.get(part.id) || "") + part.text);
    if (part.type === "tool-call") parts.push(part);
  }
  return said([...[...texts.values()].map((text) => ({ type: "text", text })), ...parts]);
}

function said(content) {
  const texts = content.filter((part) => part.type === "text").map((part) => part.text);
  const written = (input) => (typeof input === "string" ? input : JSON.stringify(input));
  const calls = content.filter((part) => part.type === "tool-call" && !part.providerExecuted);
  return [{ text: texts.join("\n"), calls: calls.map((c) => [c.toolCallId, c.toolName, written(c.input)]), finish: null }];
}

for (const { number, api, stream } of ASKED.shapes) {
  for (const agent of ASKED.agents) {
    const isPeer = agent === "peer";
    const model = MODELS[api](`${ASKED.proxy}/r/shape-${number}/a/${agent}`, isPeer ? "peer" : `shape-${number}`);
    const line = { shape: number, agent };
    try {
      line.answers = await ask(model, api, stream && !isPeer);
    } catch (error) {
      line.error = `${error?.name}: ${error?.message}`.slice(0, 300);
    }
    console.log(JSON.stringify(line));
  }
}
