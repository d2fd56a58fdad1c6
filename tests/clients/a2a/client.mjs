// A client of the tests in TypeScript's official SDKs: the same calls in the same order as `client.py`, which says what is printed.
//
//     node client.mjs URL SDK [CALL …]      SDK: 1 (speaks 1.0, and 0.3 to those that know no other) or 03; no CALL: all
//     node client.mjs URL SDK many=N        N calls, eight at a time, streams and cancellations among them

import { randomUUID } from "node:crypto";

const [GIVEN, NAME, ...NAMES] = process.argv.slice(2);
const BASE = GIVEN.replace(/\/$/, "");
const NEW = NAME === "1";
const sdk = NEW ? "a2a-1" : "a2a-03";
const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } = await import(`${sdk}/client`);
const { Role } = await import(sdk);

const compat = NEW ? { legacyCompat: { enabled: true } } : {};
const options = { transports: [new JsonRpcTransportFactory(compat)], cardResolver: new DefaultAgentCardResolver(compat) };
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, options));

// A path that is joined to the base, and not put at the root of its host.
const card = await new DefaultAgentCardResolver(compat).resolve(`${BASE}/`, ".well-known/agent-card.json");
const client = await factory.createFromAgentCard(card);

function part(content) {
  const isData = typeof content === "object";
  if (!NEW) return isData ? { kind: "data", data: content } : { kind: "text", text: content };
  const inner = isData ? { $case: "data", value: content } : { $case: "text", value: content };
  return { content: inner, metadata: undefined, filename: "", mediaType: "" };
}

function asked(contents, ids = {}) {
  const message = { messageId: randomUUID(), parts: contents.map(part) };
  if (!NEW) return { message: { ...message, kind: "message", role: "user", ...ids } };
  const more = { metadata: undefined, extensions: [], referenceTaskIds: [] };
  const whole = { ...message, contextId: "", taskId: "", role: Role.ROLE_USER, ...more, ...ids };
  return { tenant: "", message: whole, configuration: undefined, metadata: undefined };
}

const say = (contents, ids) => client.sendMessage(asked(contents, ids));
const streamed = (contents) => client.sendMessageStream(asked(contents));
const get = (id) => client.getTask({ tenant: "", id });
const cancel = (id) => client.cancelTask({ tenant: "", id, metadata: undefined });

async function stream(contents) {
  const heard = [];
  for await (const told of streamed(contents)) heard.push(told);
  return heard;
}

// The task that an event of a stream is about.
function task(told) {
  const inner = told.payload?.value ?? told;
  return inner.taskId || inner.id;
}

const isWorking = (told) => (told.payload?.value ?? told).status?.state === (NEW ? 2 : "working");
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const calls = {
  card: async () => card,
  say: () => say(["say Straße ☃"]),
  long: () => say(["long"]),
  data: () => say(["data", { city: "Köln", degrees: 7 }]),
  task: () => say(["task Berlin"]),
  fail: () => say(["fail"]),
  error: () => say(["error"]),
  unknown_task: () => get("never"),
  got: async () => get((await say(["task Bonn"])).id),
  finished: async () => cancel((await say(["task Bonn"])).id),
  goes_on: goesOn,
  stream: () => stream(["stream Berlin"]),
  stream_say: () => stream(["say streams"]),
  stream_fail: () => stream(["fail"]),
  cancelled,
  left,
  subscribed,
  parallel: () => Promise.all(Array.from({ length: 8 }, (_, number) => say([`add ${number} 100`]))),
};

// A task that waits for its user, and the next message of the same conversation.
async function goesOn() {
  const first = await say(["ask"]);
  const { id: taskId, contextId } = first;
  return [first, await say(["Kiel"], { taskId, contextId }), await say(["say hello"], { contextId })];
}

// A task is cancelled while its stream is read; the stream says so and ends.
async function cancelled() {
  const heard = [];
  let answer;
  for await (const told of streamed(["slow"])) {
    heard.push(told);
    if (!answer && isWorking(told)) answer = sleep(50).then(() => cancel(task(told)));
  }
  return [heard, await answer];
}

// A stream is left at its first word; the task goes on until it is cancelled.
async function left() {
  const first = await begun();
  return [first, await get(task(first)), await cancel(task(first))];
}

// A stream that was left is read again, by another call, until the task is cancelled.
async function subscribed() {
  const id = task(await begun());
  const answer = sleep(300).then(() => cancel(id));
  const heard = [];
  for await (const told of client.resubscribeTask({ tenant: "", id })) heard.push(told);
  return [heard, await answer];
}

// The first word of a stream that is left then; its task has begun.
async function begun() {
  let first;
  for await (const told of streamed(["slow"])) {
    first = told;
    break;
  }
  await sleep(300);
  return first;
}

// One call of many, and whether its reply is right: each third is streamed, each thirtieth is cancelled.
async function one(number) {
  if (number % 30 === 2) {
    const [heard, answer] = await cancelled();
    return [heard.at(-1), answer].every((told) => (told.payload?.value ?? told).status.state === (NEW ? 5 : "canceled"));
  }
  const words = [`add ${number} 7`];
  const told = number % 3 === 1 ? (await stream(words))[0] : await say(words);
  const [said] = (told.payload?.value ?? told).parts;
  return (said.content?.value ?? said.text) === String(number + 7);
}

async function many(number) {
  let next = 0;
  let wrong = 0;
  const worker = async () => {
    while (next < number) {
      if (!(await one(next++))) wrong += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return { asked: number, wrong };
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

function canonical(told) {
  const known = new Map();
  const named = (id) => known.get(id) ?? (known.set(id, `id-${known.size}`), known.get(id));
  return JSON.stringify(sorted(told))
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, named)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g, "TIME")
    .replaceAll(BASE, "URL");
}

function failed(error) {
  const { name: kind, message: words, code = null, data = null } = error;
  return { error: { kind, words, code, data } };
}

const isMany = NAMES[0]?.startsWith("many=");
for (const name of isMany ? ["many"] : NAMES.length ? NAMES : Object.keys(calls)) {
  const act = isMany ? () => many(Number(NAMES[0].slice(5))) : calls[name];
  console.log(canonical({ call: name, ...(await act().then((result) => ({ result }), failed)) }));
}
process.exit(0);
