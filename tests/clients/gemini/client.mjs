// What Google's own SDK for JavaScript makes of a backend: the checks of client.py, one JSON line each.
//
//     client.mjs AGENT_URL_PREFIX [NAME …]
import { GoogleGenAI } from "@google/genai";

const MODEL = "gemini-3-flash-preview";
const QUESTION = "What is 12 + 30?";
const schema = { type: "OBJECT", properties: { expression: { type: "STRING" } }, required: ["expression"] };
const CALCULATOR = { name: "calculator", description: "Computes an expression.", parameters: schema };
const FUNCTION = {
  ...CALCULATOR,
  type: "function",
  parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
};

const usage = (counted) => [counted.promptTokenCount, counted.candidatesTokenCount];

async function whole(client) {
  const config = { systemInstruction: "You solve.", temperature: 0 };
  const reply = await client.models.generateContent({ model: MODEL, contents: QUESTION, config });
  return [reply.text, reply.candidates[0].finishReason, usage(reply.usageMetadata), reply.modelVersion];
}

async function collected(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

async function streamed(client) {
  const config = { systemInstruction: "You solve." };
  const chunks = await collected(await client.models.generateContentStream({ model: MODEL, contents: QUESTION, config }));
  const text = chunks.map((chunk) => chunk.text ?? "").join("");
  return [text, chunks.at(-1).candidates[0].finishReason, usage(chunks.at(-1).usageMetadata)];
}

async function tools(client, ask) {
  const config = { tools: [{ functionDeclarations: [CALCULATOR] }] };
  const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
  const content = await ask(client, contents, config);
  const calls = content.parts.filter((part) => part.functionCall).map((part) => part.functionCall);
  const results = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { result: "42" } } }));
  contents.push(content, { role: "user", parts: results });
  const said = await ask(client, contents, config);
  return [calls.map(({ name, args }) => [name, args]), said.parts.map((part) => part.text ?? "").join("")];
}

async function askWhole(client, contents, config) {
  return (await client.models.generateContent({ model: MODEL, contents, config })).candidates[0].content;
}

async function askStreamed(client, contents, config) {
  const chunks = await collected(await client.models.generateContentStream({ model: MODEL, contents, config }));
  return { role: "model", parts: chunks.flatMap((chunk) => chunk.candidates[0].content?.parts ?? []) };
}

async function chat(client) {
  const chat = client.chats.create({ model: MODEL });
  const first = (await chat.sendMessage({ message: QUESTION })).text;
  const chunks = await collected(await chat.sendMessageStream({ message: "What is 1 + 1?" }));
  return [first, chunks.map((chunk) => chunk.text ?? "").join("")];
}

const said = (steps) =>
  steps.filter((step) => step.type === "model_output").flatMap((step) => step.content).map((content) => content.text ?? "").join("");

async function interaction(client) {
  const made = await client.interactions.create({ model: MODEL, input: QUESTION, system_instruction: "You solve." });
  return [said(made.steps), made.status, [made.usage.total_input_tokens, made.usage.total_output_tokens]];
}

async function interactionStreamed(client) {
  let [text, status, counted] = ["", null, null];
  const asked = { model: MODEL, input: QUESTION, system_instruction: "You solve.", stream: true };
  for await (const event of await client.interactions.create(asked)) {
    if (event.event_type === "step.delta" && event.delta.type === "text") text += event.delta.text;
    if (event.event_type === "interaction.completed") [status, counted] = [event.interaction.status, event.interaction.usage];
    if (event.event_type === "error") throw new Error(`error event ${event.error.code}: ${event.error.message}`);
  }
  return [text, status, counted && [counted.total_input_tokens, counted.total_output_tokens]];
}

async function interactionTools(client) {
  const first = await client.interactions.create({ model: MODEL, input: QUESTION, tools: [FUNCTION] });
  const calls = first.steps.filter((step) => step.type === "function_call");
  const input = calls.map(({ id, name }) => ({ type: "function_result", call_id: id, name, result: "42" }));
  const second = await client.interactions.create({ model: MODEL, input, previous_interaction_id: first.id, tools: [FUNCTION] });
  return [first.status, calls.map((call) => [call.name, call.arguments]), said(second.steps)];
}

const CHECKS = {
  whole,
  streamed,
  tools: (client) => tools(client, askWhole),
  tools_streamed: (client) => tools(client, askStreamed),
  chat,
  interaction,
  interaction_streamed: interactionStreamed,
  interaction_tools: interactionTools,
};

const [prefix, ...names] = process.argv.slice(2);
for (const name of names.length ? names : Object.keys(CHECKS)) {
  const [check, agent] = name.split(":");
  const httpOptions = { timeout: 20_000, retryOptions: { attempts: 1 } };
  if (prefix !== "-") httpOptions.baseUrl = prefix.replace("{}", agent ?? check);
  const client = new GoogleGenAI({ ...(prefix === "-" ? {} : { apiKey: "none" }), httpOptions });
  let seen;
  try {
    seen = await CHECKS[check](client);
  } catch (error) {
    const status = error.status ?? error.statusCode;
    seen = { raised: error.constructor.name, status: Number.isInteger(status) ? status : null };
  }
  console.log(JSON.stringify({ check: name, seen }));
}
process.exit(0);
