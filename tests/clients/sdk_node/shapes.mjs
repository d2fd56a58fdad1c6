// What openai-node and anthropic-node read of each shape, unedited and under each edit. The same as `sdk_python/shapes.py`.
//
// Called with one JSON argument: `proxy` (its address), `shapes` (number, API, whether it is asked for as a stream) and
// `agents` (the agents of a run, in order). Prints one JSON line per call: what each answer says, or the error.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai-7";

const ASKED = JSON.parse(process.argv[2]);
const USER = [{ role: "user", content: "How many towers?" }];

// What was heard of one answer so far. A piece of a call belongs to the call of its id; without one, to that of its index,
// or the last.
class Answer {
  text = "";
  calls = [];
  finish = null;

  piece(index, id, name, args) {
    const named = this.calls.filter((call) => id && call.id === id).at(-1);
    const placed = this.calls.filter((call) => index != null && call.index === index).at(-1);
    let call = named;
    if (!call && (id || !this.calls.length || (name && !placed && index != null))) {
      call = { index, id: id || "", name: "", args: "" };
      this.calls.push(call);
    }
    call ??= placed ?? this.calls.at(-1);
    call.name += name || "";
    call.args += typeof args === "string" ? args : args ? JSON.stringify(args) : "";
  }

  said() {
    return { text: this.text, calls: this.calls.map((call) => [call.id, call.name, call.args]), finish: this.finish };
  }
}

function content(value) {
  if (!Array.isArray(value)) return value || "";
  return value.filter((part) => part.type === "text").map((part) => part.text || "").join("");
}

function take(answer, said) {
  answer.text += content(said.content);
  for (const call of said.tool_calls || []) {
    const inner = call.function || call.custom || {};
    answer.piece(call.index, call.id, inner.name, inner.arguments || inner.input);
  }
  if (said.function_call) answer.piece(null, null, said.function_call.name, said.function_call.arguments);
}

async function* each(reply, stream) {
  if (stream) yield* reply;
  else yield reply;
}

async function choices(reply, stream, hear) {
  const answers = new Map();
  for await (const part of each(reply, stream)) {
    for (const choice of part.choices || []) {
      const index = choice.index || 0;
      if (!answers.has(index)) answers.set(index, new Answer());
      hear(answers.get(index), choice);
      answers.get(index).finish = choice.finish_reason || answers.get(index).finish;
    }
  }
  return [...answers.keys()].sort((a, b) => a - b).map((index) => answers.get(index).said());
}

async function chat(sdk, model, stream) {
  const reply = await sdk.chat.completions.create({ model, messages: USER, stream });
  return choices(reply, stream, (answer, choice) => {
    const said = stream ? choice.delta : choice.message;
    if (said) take(answer, said);
  });
}

async function completions(sdk, model, stream) {
  const reply = await sdk.completions.create({ model, prompt: "How many towers?", stream });
  return choices(reply, stream, (answer, choice) => {
    answer.text += choice.text || "";
  });
}

function response(output) {
  const answer = new Answer();
  const texts = [];
  for (const item of output || []) {
    if (item.type === "message") texts.push(...item.content.filter((part) => part.text != null).map((part) => part.text));
    if (item.type === "function_call") answer.piece(null, item.call_id, item.name, item.arguments);
    if (item.type === "custom_tool_call") answer.piece(null, item.call_id, item.name, item.input);
  }
  answer.text = texts.join("\n");
  return answer.said();
}

async function responses(sdk, model, stream) {
  const reply = await sdk.responses.create({ model, input: "How many towers?", stream });
  if (!stream) return [response(reply.output)];
  const [deltas, done, items] = [new Map(), new Map(), []];
  let final = null;
  for await (const event of reply) {
    const place = JSON.stringify([event.output_index, event.item_id, event.content_index]);
    if (event.type === "response.output_text.delta") deltas.set(place, (deltas.get(place) || "") + event.delta);
    if (event.type === "response.output_text.done") done.set(place, event.text);
    if (event.type === "response.output_item.done") items.push(event.item);
    if (event.type === "response.completed" || event.type === "response.incomplete") final = event.response;
  }
  for (const [place, text] of done) {
    if (deltas.has(place) && deltas.get(place) !== text) throw new Error(`deltas: ${deltas.get(place)}; done: ${text}`);
  }
  const said = response(final?.output);
  const words = [...(deltas.size ? deltas : done).values()].join("\n");
  if (said.text && words && said.text !== words) throw new Error(`events: ${words}; the last one: ${said.text}`);
  const before = items.length ? response(items) : said;
  const calls = said.calls.length < before.calls.length ? before.calls : said.calls;
  const known = calls.map((call) => JSON.stringify(call));
  for (const call of [...said.calls, ...before.calls]) {
    if (!known.includes(JSON.stringify(call))) throw new Error(`only one of the events and the last one calls ${call}`);
  }
  return [{ ...said, text: said.text || words || before.text, calls }];
}

async function messages(sdk, model, stream) {
  const reply = await sdk.messages.create({ model, max_tokens: 100, messages: USER, stream });
  const answer = new Answer();
  if (!stream) {
    answer.text = reply.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
    for (const block of reply.content) {
      if (block.type === "tool_use") answer.piece(null, block.id, block.name, JSON.stringify(block.input));
    }
    answer.finish = reply.stop_reason;
    return [answer.said()];
  }
  const [texts, started] = [new Map(), new Map()];
  for await (const event of reply) {
    const block = event.content_block;
    if (block?.type === "text") texts.set(event.index, block.text || "");
    if (block?.type === "tool_use") {
      answer.piece(event.index, block.id, block.name, "");
      started.set(event.index, block.input);
    }
    if (event.delta?.type === "text_delta") texts.set(event.index, (texts.get(event.index) || "") + event.delta.text);
    if (event.delta?.type === "input_json_delta") answer.piece(event.index, null, "", event.delta.partial_json);
    if (event.type === "message_delta") answer.finish = event.delta.stop_reason;
  }
  // A call whose input never came in pieces has what it began with.
  for (const call of answer.calls) call.args ||= JSON.stringify(started.get(call.index) || {});
  answer.text = [...texts.values()].join("\n");
  return [answer.said()];
}

const more = { apiKey: "sk-client-tests", maxRetries: 0, timeout: 20000 };
const APIS = {
  openai_chat: [OpenAI, "/v1", chat],
  openai_completions: [OpenAI, "/v1", completions],
  openai_responses: [OpenAI, "/v1", responses],
  anthropic_messages: [Anthropic, "", messages],
};

for (const { number, api, stream } of ASKED.shapes) {
  const [Client, suffix, call] = APIS[api];
  for (const agent of ASKED.agents) {
    const isPeer = agent === "peer";
    const sdk = new Client({ ...more, baseURL: `${ASKED.proxy}/r/shape-${number}/a/${agent}${suffix}` });
    const line = { shape: number, agent };
    try {
      line.answers = await call(sdk, isPeer ? "peer" : `shape-${number}`, stream && !isPeer);
    } catch (error) {
      line.error = `${error.name}: ${error.message}`.slice(0, 300);
    }
    console.log(JSON.stringify(line));
  }
}
