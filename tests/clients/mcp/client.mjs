// A client of the tests in TypeScript's official SDKs: the same calls in the same order as `client.py`.
//
//     node client.mjs URL SDK [CALL …]      SDK: 1 (speaks 2025-11-25) or 2 (asks for 2026-07-28); no CALL: all
//     node client.mjs URL SDK many=N        N calls, eight at a time
//
// URL may be a list in JSON: the command of a server that speaks over standard input and output.
//
// Prints one JSON line per call, with its keys sorted: what the SDK gave to the program, nothing left out.

const [URL_, SDK, ...NAMES] = process.argv.slice(2);

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const COMMAND = URL_.startsWith("[") && JSON.parse(URL_);
const STDIO = COMMAND && { command: COMMAND[0], args: COMMAND.slice(1) };

const print = (line) => console.log(JSON.stringify(sorted(line)));
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function connected() {
  const options = { capabilities: { elicitation: {} } };
  const info = { name: "tests", version: "1" };
  if (SDK === "1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, options);
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { really: true } }));
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const transport = STDIO ? new StdioClientTransport(STDIO) : new StreamableHTTPClientTransport(new URL(URL_));
    await client.connect(transport);
    const call = (params, more) => client.callTool(params, undefined, more);
    const close = async () => {
      if (!STDIO) await transport.terminateSession();
      await client.close();
    };
    return { client, call, close };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(info, { ...options, versionNegotiation: { mode: "auto" } });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { really: true } }));
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const transport = STDIO ? new StdioClientTransport(STDIO) : new StreamableHTTPClientTransport(new URL(URL_));
  await client.connect(transport);
  const close = async () => {
    if (!STDIO) await transport.terminateSession();
    await client.close();
  };
  return { client, call: (params, more) => client.callTool(params, more), close };
}

const { client, call, close } = await connected();
const tool = (name, args = {}, more) => call({ name, arguments: args }, more);

const calls = {
  list: () => client.listTools(),
  add: () => tool("add", { a: 2, b: 3 }),
  unicode: () => tool("lookup", { key: "berlin" }),
  long: () => tool("lookup", { key: "long" }),
  table: () => tool("table"),
  fail: () => tool("fail"),
  unknown_tool: () => tool("nonsense"),
  wrong_arguments: () => tool("add", { a: "two" }),
  // What goes into headers is known from the list.
  route: () => client.listTools().then(() => tool("route", { region: "Köln", weight: 3 })),
  picture: () => tool("picture"),
  resource: () => client.readResource({ uri: "note://today" }),
  unknown_resource: () => client.readResource({ uri: "note://never" }),
  prompt: () => client.getPrompt({ name: "review", arguments: { text: "abc" } }),
  slow: () => withProgress("slow", { seconds: 0.4 }),
  resumed: () => withProgress("resumed"),
  remove: () => tool("remove", { key: "k" }),
  parallel: () => Promise.all(Array.from({ length: 8 }, (_, n) => tool("add", { a: n, b: 100 }))),
  cancelled: gaveUp,
};

async function withProgress(name, args) {
  const heard = [];
  const result = await tool(name, args, { onprogress: (said) => heard.push(said) });
  return { heard, result };
}

// A slow call is given up when its first word comes; the server must learn of it.
async function gaveUp() {
  const before = Number((await tool("stopped")).content[0].text);
  const stop = new AbortController();
  const call = tool("slow", { seconds: 40 }, { signal: stop.signal, onprogress: () => stop.abort("enough") });
  const early = setTimeout(() => stop.abort("enough"), 300);
  await call.then(() => { throw new Error("the call was answered"); }, () => {});
  clearTimeout(early);
  for (let tries = 0; tries < 50; tries++) {
    const stopped = Number((await tool("stopped")).content[0].text) - before;
    if (stopped) return { stopped };
    await sleep(100);
  }
  return { stopped: 0 };
}

async function many(number) {
  let next = 0;
  let wrong = 0;
  const worker = async () => {
    while (next < number) {
      const n = next++;
      const { content } = await tool("add", { a: n, b: 7 });
      if (content[0].text !== String(n + 7)) wrong += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return { asked: number, wrong };
}

const errors = (error) => ({ error: { code: error.code ?? null, message: error.message, data: error.data ?? null } });
const asked = NAMES[0]?.startsWith("many=") ? ["many"] : NAMES.length ? NAMES : Object.keys(calls);
for (const name of asked) {
  const act = name === "many" ? () => many(Number(NAMES[0].slice(5))) : calls[name];
  print({ call: name, ...(await act().then((result) => ({ result }), errors)) });
}
await close();
process.exit(0);
