// openai-node against running proxies: what a program sees through the SDK's own objects and error classes.
//
// Called with the SDK's package name and one JSON argument: the address of each proxy (`clean`, `edited_whole`,
// `edited_streamed`, `faulty`, `no_upstream`) and the `run` to record under. Prints one JSON line per check.

import assert from "node:assert/strict";
import { z } from "zod";

const [packageName, proxiesJson] = process.argv.slice(2);
const openai = await import(packageName);
const { zodResponseFormat } = await import(`${packageName}/helpers/zod`);
const PROXIES = JSON.parse(proxiesJson);

const PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
const SOLVE = [
  { role: "system", content: "You solve word problems. End with a line `ANSWER: <number>`." },
  { role: "user", content: PROBLEM },
];
const CALCULATE = [{ role: "system", content: "You solve word problems. Compute with the calculator." }, SOLVE[1]];
const CALCULATOR = {
  type: "function",
  function: {
    name: "calculator",
    description: "Evaluate an arithmetic expression such as 3 * (4 + 5).",
    parameters: {
      type: "object",
      properties: { expression: { type: "string" } },
      required: ["expression"],
      additionalProperties: false,
    },
    strict: true,
  },
};
const Solution = z.object({ steps: z.array(z.string()), answer: z.number() });

function client(proxy, agent, options = {}) {
  const baseURL = `${PROXIES[proxy]}/r/${PROXIES.run}/a/${agent}/v1`;
  return new openai.OpenAI({ baseURL, apiKey: "sk-client-tests", ...options });
}

function create(sdk, { messages = SOLVE, ...options } = {}, requestOptions) {
  return sdk.chat.completions.create({ model: "gpt-4o-mini", messages, ...options }, requestOptions);
}

function streamFinal(sdk, { messages = SOLVE, ...options } = {}) {
  return sdk.chat.completions.stream({ model: "gpt-4o-mini", messages, ...options }).finalChatCompletion();
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

const joined = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
const contains = (text, part) => assert.ok(text.includes(part), `no "${part}" in "${text}"`);

async function raised(kind, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.constructor.name, kind.name, String(error));
    return error;
  }
  assert.fail(`no ${kind.name}`);
}

// An SDK object without what differs between two calls by nature.
function comparable(completion) {
  const dropped = new Set(["id", "index", "parsed", "parsed_arguments"]);
  const plain = (key, value) => {
    if (dropped.has(key) || value === null || (Array.isArray(value) && value.length === 0)) return undefined;
    return value;
  };
  return JSON.parse(JSON.stringify(completion.choices, (key, value) => (key === "" ? value : plain(key, value))));
}

// The same call under the same plan in two runs of one name, so with the same draws: once whole, once streamed.
async function editedTwins(agent, options) {
  const whole = await create(client("edited_whole", agent), options);
  const streamed = await streamFinal(client("edited_streamed", agent), options);
  const untouched = await create(client("clean", `${agent}_untouched`), options);
  assert.deepEqual(comparable(streamed), comparable(whole));
  assert.notDeepEqual(comparable(whole), comparable(untouched), "nothing was edited");
  return whole.choices[0].message;
}

const STATUS_ERRORS = [
  ["status_400", "BadRequestError", 400],
  ["status_401", "AuthenticationError", 401],
  ["status_403", "PermissionDeniedError", 403],
  ["status_404", "NotFoundError", 404],
  ["status_429", "RateLimitError", 429],
  ["status_500", "InternalServerError", 500],
  ["status_503", "InternalServerError", 503],
];

const CHECKS = {
  "a whole reply is read": async () => {
    const completion = await create(client("clean", "whole"));
    contains(completion.choices[0].message.content, "ANSWER: 75");
    assert.equal(completion.choices[0].finish_reason, "stop");
    assert.ok(completion.usage.total_tokens > 0);
  },
  "a streamed reply comes in pieces and says what the whole one says": async () => {
    const whole = await create(client("clean", "whole_first"));
    const chunks = await collect(create(client("clean", "streamed"), { stream: true }));
    assert.equal(joined(chunks), whole.choices[0].message.content);
    assert.ok(chunks.length > 3, `only ${chunks.length} chunks`);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  },
  "a stream carries usage in its last chunk if asked to": async () => {
    const options = { stream: true, stream_options: { include_usage: true } };
    const last = (await collect(create(client("clean", "usage"), options))).at(-1);
    assert.deepEqual(last.choices, []);
    assert.ok(last.usage.total_tokens > 0);
  },
  "the stream helper assembles the same completion as a whole call": async () => {
    const whole = await create(client("clean", "helper_whole"));
    assert.deepEqual(comparable(await streamFinal(client("clean", "helper"))), comparable(whole));
  },
  "two choices come back as two, whole and streamed": async () => {
    const whole = await create(client("clean", "choices"), { n: 2 });
    assert.deepEqual(whole.choices.map((choice) => choice.index), [0, 1]);
    const chunks = await collect(create(client("clean", "choices_streamed"), { n: 2, stream: true }));
    assert.deepEqual(new Set(chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.index))), new Set([0, 1]));
  },
  "the tool runner calls the tool and gives its result back": async () => {
    const expressions = [];
    const calculator = {
      ...CALCULATOR,
      function: {
        ...CALCULATOR.function,
        parse: JSON.parse,
        function: ({ expression }) => {
          expressions.push(expression);
          return "75";
        },
      },
    };
    const options = { model: "gpt-4o-mini", messages: CALCULATE, tools: [calculator] };
    const runner = client("clean", "tools").chat.completions.runTools(options);
    contains(await runner.finalContent(), "75");
    assert.ok(expressions.length > 0, "the tool was not called");
  },
  "a streamed tool call assembles to the whole one, and its finish reason is kept": async () => {
    const options = { messages: CALCULATE, tools: [CALCULATOR], tool_choice: "required" };
    const whole = await create(client("clean", "call"), options);
    assert.equal(whole.choices[0].message.tool_calls[0].function.name, "calculator");
    assert.deepEqual(comparable(await streamFinal(client("clean", "call_streamed"), options)), comparable(whole));
  },
  "a structured reply is parsed by the user's own schema, whole and streamed": async () => {
    const options = { model: "gpt-4o-mini", messages: SOLVE, response_format: zodResponseFormat(Solution, "solution") };
    const whole = await client("clean", "parse").chat.completions.parse(options);
    assert.equal(whole.choices[0].message.parsed.answer, 75);
    const streamed = await streamFinal(client("clean", "parse_streamed"), options);
    assert.deepEqual(streamed.choices[0].message.parsed, whole.choices[0].message.parsed);
  },
  "the list of models is passed through": async () => {
    assert.ok((await client("clean", "models").models.list()).data.length > 0);
  },
  "sixteen overlapping calls of one client each get their own answer": async () => {
    const sdk = client("clean", "crowd");
    const boxes = Array.from({ length: 16 }, (_, index) => 20 + index);
    const ask = async (count) => {
      const messages = [SOLVE[0], { role: "user", content: PROBLEM.replace("12", String(count)) }];
      if (count % 2 === 0) return joined(await collect(create(sdk, { messages, stream: true })));
      return (await create(sdk, { messages })).choices[0].message.content;
    };
    const texts = await Promise.all(boxes.map(ask));
    texts.forEach((text, index) => contains(text, `ANSWER: ${boxes[index] * 7 - 9}`));
  },
  "a stream left after its first chunk leaves the client usable": async () => {
    const sdk = client("clean", "left");
    for await (const chunk of await create(sdk, { stream: true })) {
      assert.ok(chunk.id);
      break;
    }
    contains((await create(sdk)).choices[0].message.content, "ANSWER: 75");
  },
  "a stream that hangs midway can be aborted at once, and the next call works": async () => {
    const sdk = client("faulty", "hangs");
    const started = performance.now();
    const stream = await create(sdk, { stream: true });
    let seen = 0;
    setTimeout(() => stream.controller.abort(), 500);
    for await (const chunk of stream) seen += chunk.choices.length;
    assert.ok(seen >= 2, `${seen} chunks before the abort`);
    assert.ok(performance.now() - started < 5000, "the abort took 5 s");
    contains((await create(sdk)).choices[0].message.content, "ANSWER: 75");
  },
  "corrupt_number: the edited stream and the edited whole reply build the same object": async () => {
    assert.ok(!(await editedTwins("corrupted")).content.includes("ANSWER: 75"));
  },
  "replace_text: the same, with a longer text than the one replaced": async () => {
    contains((await editedTwins("replaced")).content, "THE RESULT IS");
  },
  "truncate_output: the same, with a shorter text and finish reason `length`": async () => {
    const whole = (await create(client("edited_whole", "truncated"))).choices[0];
    const chunks = await collect(create(client("edited_streamed", "truncated"), { stream: true }));
    assert.equal(joined(chunks), whole.message.content);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "length");
    assert.equal(whole.finish_reason, "length");
    const untouched = (await create(client("clean", "truncated_untouched"))).choices[0].message.content;
    assert.ok(untouched.startsWith(whole.message.content) && untouched !== whole.message.content);
  },
  "edit_tool_call: the same, on the arguments of a tool call": async () => {
    const options = { messages: CALCULATE, tools: [CALCULATOR], tool_choice: "required" };
    const call = (await editedTwins("redirected", options)).tool_calls[0];
    assert.deepEqual(JSON.parse(call.function.arguments), { expression: "1 + 1" });
  },
  "corrupt_number: an edited structured reply still parses, with another number": async () => {
    const options = { model: "gpt-4o-mini", messages: SOLVE, response_format: zodResponseFormat(Solution, "solution") };
    const parsed = (completion) => completion.choices[0].message.parsed;
    const whole = parsed(await client("edited_whole", "form").chat.completions.parse(options));
    assert.deepEqual(parsed(await streamFinal(client("edited_streamed", "form"), options)), whole);
    const untouched = parsed(await client("clean", "form_untouched").chat.completions.parse(options));
    assert.notDeepEqual(whole, untouched, "nothing was edited");
  },
  "a 429 and a 500 on the first attempt are retried by the SDK without the program noticing": async () => {
    contains((await create(client("faulty", "limited_once"))).choices[0].message.content, "ANSWER: 75");
    contains((await create(client("faulty", "broken_once"))).choices[0].message.content, "ANSWER: 75");
    const chunks = await collect(create(client("faulty", "broken_once_streamed"), { stream: true }));
    contains(joined(chunks), "ANSWER: 75");
  },
  "injected statuses raise the SDK's own error classes, with message and type": async () => {
    for (const [agent, kind, status] of STATUS_ERRORS) {
      const error = await raised(openai[kind], create(client("faulty", agent, { maxRetries: 0 })));
      assert.equal(error.status, status);
      assert.ok(error.error?.message && error.error?.type, JSON.stringify(error.error));
    }
  },
  "a 500 on every attempt is raised after the SDK's two retries": async () => {
    const error = await raised(openai.InternalServerError, create(client("faulty", "broken_always")));
    assert.equal(error.status, 500);
  },
  "a reply that is late raises a time-out": async () => {
    await raised(openai.APIConnectionTimeoutError, create(client("faulty", "late", { maxRetries: 0, timeout: 300 })));
  },
  "a reset connection raises a connection error": async () => {
    await raised(openai.APIConnectionError, create(client("faulty", "reset", { maxRetries: 0 })));
  },
  "a stream cut midway gives its chunks, then raises; a clean cut ends without an error": async () => {
    const seen = [];
    await assert.rejects(async () => {
      for await (const chunk of await create(client("faulty", "cut"), { stream: true })) seen.push(chunk);
    }, "the cut went unnoticed");
    assert.ok(seen.length > 0, "no chunk before the cut");
    const short = joined(await collect(create(client("faulty", "cut_clean"), { stream: true })));
    assert.ok(!short.includes("ANSWER: 75"), short);
  },
  "a whole reply cut midway raises an error": async () => {
    await assert.rejects(create(client("faulty", "cut_whole", { maxRetries: 0 })), "the cut went unnoticed");
  },
  "an upstream that cannot be reached raises a server error that says so": async () => {
    const sdk = client("no_upstream", "alone", { maxRetries: 0 });
    const error = await raised(openai.InternalServerError, create(sdk));
    assert.ok([502, 503, 504].includes(error.status), String(error.status));
    assert.ok(error.error?.message);
  },
  "a doubled `/v1` is answered with the fix": async () => {
    const baseURL = `${PROXIES.clean}/r/${PROXIES.run}/a/doubled/v1/v1`;
    const sdk = new openai.OpenAI({ baseURL, apiKey: "sk-client-tests", maxRetries: 0 });
    contains(String(await raised(openai.NotFoundError, create(sdk))), "/v1");
  },
};

for (const [check, run] of Object.entries(CHECKS)) {
  try {
    await run();
    console.log(JSON.stringify({ check, ok: true }));
  } catch (error) {
    console.log(JSON.stringify({ check, ok: false, why: `${error.name}: ${error.message}` }));
  }
}
