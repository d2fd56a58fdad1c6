// An agent of the tests in TypeScript's official SDKs: what `script.mjs` says, over JSON-RPC at `/a2a/jsonrpc`.
//
//     node server.mjs SDK PUBLIC_PORT      SDK: 1 or 03; PUBLIC_PORT: the port that the card names; prints its own
//
// SDK 1 speaks 1.0, and 0.3 to those that know no other; SDK 03 speaks 0.3.

import { randomUUID } from "node:crypto";
import express from "express";
import { CARD, SKILL, events } from "./script.mjs";

const [NAME, PORT] = process.argv.slice(2);
const NEW = NAME === "1";
const PATH = "/a2a/jsonrpc";
const url = `http://127.0.0.1:${PORT}${PATH}`;
const sdk = NEW ? "a2a-1" : "a2a-03";
const { DefaultRequestHandler, InMemoryTaskStore, AgentEvent } = await import(`${sdk}/server`);
const { UserBuilder, agentCardHandler, jsonRpcHandler } = await import(`${sdk}/server/express`);
const { Role, TaskState } = await import(sdk);

const modes = ["text/plain", "application/json"];
const shared = { ...CARD, defaultInputModes: modes, defaultOutputModes: modes };
const card = NEW
  ? {
      ...shared,
      supportedInterfaces: ["1.0", "0.3"].map((protocolVersion) => ({ url, protocolBinding: "JSONRPC", protocolVersion, tenant: "" })),
      capabilities: { streaming: true, extensions: [] },
      skills: [{ ...SKILL, examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
      securitySchemes: {},
      securityRequirements: [],
      signatures: [],
      provider: undefined,
    }
  : { ...shared, url, preferredTransport: "JSONRPC", protocolVersion: "0.3.0", capabilities: { streaming: true }, skills: [SKILL] };

const isData = (content) => typeof content === "object";
const none = NEW ? { metadata: undefined } : {};

function part(content) {
  if (!NEW) return isData(content) ? { kind: "data", data: content } : { kind: "text", text: content };
  const inner = isData(content) ? { $case: "data", value: content } : { $case: "text", value: content };
  return { content: inner, metadata: undefined, filename: "", mediaType: "" };
}

function read(message) {
  const contents = message.parts.map((one) => (NEW ? one.content : { $case: one.kind, value: one[one.kind] }));
  const text = contents.filter((one) => one.$case === "text").map((one) => one.value).join("\n");
  return [text, contents.find((one) => one.$case === "data")?.value ?? null];
}

const state = (name) => (NEW ? TaskState[`TASK_STATE_${name.toUpperCase()}`] : name.replace("_", "-"));
const event = (kind, old, data) => (NEW ? AgentEvent[kind]({ ...data, ...none }) : { kind: old, ...data });

class Agent {
  tasks = new Map();

  async execute({ taskId, contextId, userMessage, task }, bus) {
    const ids = { taskId, contextId };
    for (const [what, ...told] of events(...read(userMessage), task !== undefined)) {
      // Others come to word between two events, as with an agent that works.
      await new Promise((done) => setTimeout(done, 10));
      if (what === "message") bus.publish(event("message", "message", this.message(ids, told[0])));
      else if (what === "task") {
        const status = { state: state("submitted"), message: undefined, timestamp: undefined };
        bus.publish(event("task", "task", { id: taskId, contextId, status, artifacts: [], history: [userMessage] }));
        this.waiting(ids);
      } else if (what === "status") this.status(bus, ids, ...told);
      else if (what === "artifact") {
        const [name, parts, append, lastChunk] = told;
        const artifact = { artifactId: name, name, parts: parts.map(part), ...(NEW ? { description: "", extensions: [], ...none } : {}) };
        bus.publish(event("artifactUpdate", "artifact-update", { ...ids, artifact, append, lastChunk }));
      } else if (what === "error") throw new Error(told[0]);
      else await this.tasks.get(taskId).cancelled;
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    const { ids, cancel } = this.tasks.get(taskId);
    this.status(bus, ids, "canceled", null);
    cancel();
  }

  // Somebody may cancel as soon as the task is known.
  waiting(ids) {
    let cancel;
    const cancelled = new Promise((done) => (cancel = done));
    this.tasks.set(ids.taskId, { ids, cancel, cancelled });
  }

  status(bus, ids, name, text) {
    const message = text === null ? undefined : { ...(NEW ? {} : { kind: "message" }), ...this.message(ids, [text]) };
    const status = { state: state(name), message, timestamp: new Date().toISOString() };
    const final = NEW ? {} : { final: !["working", "submitted"].includes(name) };
    bus.publish(event("statusUpdate", "status-update", { ...ids, status, ...final }));
  }

  message(ids, contents) {
    const more = NEW ? { extensions: [], referenceTaskIds: [], ...none } : {};
    return { messageId: randomUUID(), role: NEW ? Role.ROLE_AGENT : "agent", parts: contents.map(part), ...ids, ...more };
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
const compat = NEW ? { legacyCompat: { enabled: true } } : {};
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, ...compat }));
app.use(PATH, jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, ...compat }));
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
