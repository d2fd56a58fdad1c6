// A server of the tests in TypeScript's official SDKs. The same tools as `server.py`.
//
//     node server.mjs SDK [MODE]      SDK: 1 (speaks 2025-11-25) or 2 (2026-07-28 as well)
//                                     MODE: plain, json (no streams), resumable (events have ids; SDK 1 alone)
//
// Prints its port when it listens.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

const [SDK, MODE = "plain"] = process.argv.slice(2);
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const KEYS = { berlin: "Germany — Straße", long: "0123456789".repeat(20_000) };
const TABLE = { rows: [{ name: "a", count: 1 }, { name: "b", count: 2 }] };
const SURE = { type: "object", properties: { really: { type: "boolean" } }, required: ["really"] };

// How often each tool ran, and how many slow calls were given up: the same for every session.
const count = { ran: {}, stopped: 0 };

const text = (said) => ({ content: [{ type: "text", text: String(said) }] });

// What the two SDKs call differently, in one shape.
function context(sdk, extra) {
  const one = sdk === "1";
  return {
    signal: one ? extra.signal : extra.mcpReq.signal,
    async progress(progress, total, message) {
      const token = (one ? extra : extra.mcpReq)._meta?.progressToken;
      if (token === undefined) return;
      const said = { method: "notifications/progress", params: { progressToken: token, progress, total, message } };
      await (one ? extra.sendNotification(said) : extra.mcpReq.notify(said));
    },
    closeStream: () => (one ? extra.closeSSEStream?.() : undefined),
  };
}

function registered(server, sdk, ask) {
  const tool = (name, description, config, act) =>
    server.registerTool(name, { description, ...config }, (args, extra) => {
      count.ran[name] = (count.ran[name] ?? 0) + 1;
      // Without arguments the first SDK leaves them out of the call.
      return act(...(config.inputSchema ? [args, extra] : [{}, extra ?? args]));
    });
  const input = (shape) => ({ inputSchema: sdk === "1" ? shape : z.object(shape) });
  const output = (shape) => ({ outputSchema: sdk === "1" ? shape : z.object(shape) });

  tool("add", "Adds two whole numbers.", input({ a: z.number().int(), b: z.number().int() }), ({ a, b }) => text(a + b));
  tool("lookup", "Looks a key up.", input({ key: z.string() }), ({ key }) => text(KEYS[key] ?? "nothing"));
  tool("fail", "Always fails.", input({}), () => {
    throw new Error("this tool fails");
  });
  tool("slow", "Takes its time and says how far it is.", input({ seconds: z.number() }), async ({ seconds }, extra) => {
    const { signal, progress } = context(sdk, extra);
    try {
      for (let part = 1; part <= 4; part++) {
        await sleep((seconds * 1000) / 4, undefined, { signal });
        await progress(part, 4, `part ${part}`);
      }
    } catch (error) {
      count.stopped += 1;
      throw error;
    }
    return text("done");
  });
  tool("resumed", "Closes its stream, goes on, and is read on another.", input({}), async (_args, extra) => {
    const { progress, closeStream } = context(sdk, extra);
    await progress(1, 2, "before");
    closeStream();
    await sleep(200);
    await progress(2, 2, "after");
    return text("read to the end");
  });
  tool("picture", "A picture.", input({}), () => ({ content: [{ type: "image", data: PICTURE, mimeType: "image/png" }] }));
  const rows = { rows: z.array(z.object({ name: z.string(), count: z.number().int() })) };
  tool("table", "A table.", { ...input({}), ...output(rows) }, () => ({ ...text(JSON.stringify(TABLE)), structuredContent: TABLE }));
  tool("remove", "Removes a key when it is sure.", input({ key: z.string() }), ({ key }, extra) => ask(key, extra));
  const parcel = { region: z.string().meta({ "x-mcp-header": "Region" }), weight: z.number().int() };
  // A client of 2026-07-28 says the region in a header too.
  tool("route", "Says where a parcel goes.", input(parcel), ({ region, weight }) => text(`${weight} kg to ${region}`));
  tool("stopped", "How many slow calls were given up.", input({}), () => text(count.stopped));
  tool("ran", "How often a tool ran.", input({ tool: z.string() }), (args) => text(count.ran[args.tool] ?? 0));

  server.registerResource("today", "note://today", { mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "nothing today" }],
  }));
  const words = { text: z.string() };
  server.registerPrompt("review", { description: "Asks for a review.", argsSchema: sdk === "1" ? words : z.object(words) }, (args) => ({
    messages: [{ role: "user", content: { type: "text", text: `Review this: ${args.text}` } }],
  }));
  return server;
}

// SDK 1: a session each, with a server of its own; events are kept where they can be asked for again.
async function first() {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const { ElicitResultSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const sessions = new Map();
  const ask = async (key, extra) => {
    const params = { mode: "form", message: "Really?", requestedSchema: SURE };
    const said = await extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
    return text(`removed ${key}: ${said.content.really}`);
  };
  return async (request, response) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: MODE === "json",
      ...(MODE === "resumable" ? { eventStore: new Events(), retryInterval: 50 } : {}),
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await registered(new McpServer({ name: "calc", version: "1" }), "1", ask).connect(transport);
    return transport.handleRequest(request, response);
  };
}

// SDK 2: a server per request; it asks by a result that wants input.
async function second() {
  const { McpServer, acceptedContent, createMcpHandler, inputRequired } = await import("@modelcontextprotocol/server");
  const { toNodeHandler } = await import("@modelcontextprotocol/node");
  const ask = (key, extra) => {
    const said = acceptedContent(extra.mcpReq.inputResponses, "sure", z.object({ really: z.boolean() }));
    if (said) return text(`removed ${key}: ${said.really}`);
    return inputRequired({ inputRequests: { sure: inputRequired.elicit({ message: "Really?", requestedSchema: SURE }) }, requestState: "asked once" });
  };
  const factory = () => registered(new McpServer({ name: "calc", version: "2" }), "2", ask);
  return toNodeHandler(createMcpHandler(factory, { responseMode: MODE === "json" ? "json" : "auto" }));
}

class Events {
  kept = [];

  async storeEvent(stream, message) {
    this.kept.push({ id: `${stream}/${this.kept.length}`, stream, message });
    return this.kept.at(-1).id;
  }

  async getStreamIdForEventId(id) {
    return id.slice(0, id.lastIndexOf("/"));
  }

  async replayEventsAfter(last, { send }) {
    const stream = await this.getStreamIdForEventId(last);
    const from = this.kept.findIndex((event) => event.id === last) + 1;
    for (const event of this.kept.slice(from)) {
      if (event.stream === stream && Object.keys(event.message).length) await send(event.id, event.message);
    }
    return stream;
  }
}

const handle = SDK === "1" ? await first() : await second();
const listener = createServer((request, response) => {
  Promise.resolve(handle(request, response)).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
}).listen(0, "127.0.0.1", () => console.log(listener.address().port));
