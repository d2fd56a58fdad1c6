// openai-node's Responses and anthropic-node's Messages against running proxies, stream helpers included: the object that
// an SDK builds from an edited stream is the one it builds from the edited whole reply. The same checks as
// `sdk_python/surfaces.py`, under the same plan.
//
// Called with the package name of openai-node and one JSON argument: the address of each proxy (`clean`, `whole`,
// `streamed`) and the `run` to record under. Prints one JSON line per check.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const [packageName, proxiesJson] = process.argv.slice(2);
const openai = await import(packageName);
const PROXIES = JSON.parse(proxiesJson);

const SYSTEM = "You solve word problems. End with a line `ANSWER: <number>`.";
const CALCULATE = "You solve word problems. Compute with the calculator.";
const PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
const SCHEMA = { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] };
const DESCRIPTION = "Evaluate an arithmetic expression such as 3 * (4 + 5).";

// openai-node, `/v1/responses`.
class Responses {
  static overloaded = openai.InternalServerError;
  static inStream = openai.APIError;

  constructor(proxy, agent) {
    const baseURL = `${PROXIES[proxy]}/r/${PROXIES.run}-responses/a/${agent}/v1`;
    this.sdk = new openai.OpenAI({ baseURL, apiKey: "sk-client-tests" });
  }

  options(tools) {
    const tool = { type: "function", name: "calculator", description: DESCRIPTION, parameters: SCHEMA, strict: false };
    const more = tools ? { tools: [tool] } : {};
    return { model: "gpt-5", instructions: tools ? CALCULATE : SYSTEM, input: PROBLEM, ...more };
  }

  whole(tools = false) {
    return this.sdk.responses.create(this.options(tools));
  }

  // The final object, and what was said on the way. The helper hands an error on as an event, so it is raised here.
  async streamed(tools = false) {
    const said = [];
    const stream = this.sdk.responses.stream(this.options(tools));
    for await (const event of stream) {
      if (["response.output_text.delta", "response.function_call_arguments.delta"].includes(event.type)) {
        said.push(event.delta);
      } else if (event.type === "error") {
        throw new openai.APIError(undefined, event, event.message, undefined);
      }
    }
    return [await stream.finalResponse(), said.join("")];
  }

  said(response) {
    const calls = response.output.filter((item) => item.type === "function_call").map((item) => item.arguments);
    const parts = response.output.filter((item) => item.type === "message").flatMap((item) => item.content);
    return parts.map((part) => part.text).join("") + calls.join("");
  }

  comparable({ output, status, incomplete_details }) {
    return strip({ output, status, incomplete_details });
  }
}

// anthropic-node, `/v1/messages`.
class Messages {
  static overloaded = Anthropic.APIError;
  static inStream = Anthropic.APIError;

  constructor(proxy, agent) {
    const baseURL = `${PROXIES[proxy]}/r/${PROXIES.run}-messages/a/${agent}`;
    this.sdk = new Anthropic({ baseURL, apiKey: "sk-client-tests" });
  }

  options(tools) {
    const more = tools ? { tools: [{ name: "calculator", description: DESCRIPTION, input_schema: SCHEMA }] } : {};
    const messages = [{ role: "user", content: PROBLEM }];
    return { model: "claude", max_tokens: 512, system: tools ? CALCULATE : SYSTEM, messages, ...more };
  }

  whole(tools = false) {
    return this.sdk.messages.create(this.options(tools));
  }

  async streamed(tools = false) {
    const said = [];
    const stream = this.sdk.messages.stream(this.options(tools));
    stream.on("text", (text) => said.push(text));
    stream.on("inputJson", (piece) => said.push(piece));
    return [await stream.finalMessage(), said.join("")];
  }

  said(message) {
    return message.content.map((block) => (block.type === "text" ? block.text : JSON.stringify(block.input))).join("");
  }

  comparable({ content, stop_reason, stop_sequence, role }) {
    return strip({ content, stop_reason, stop_sequence, role });
  }
}

// Without what only one form fills in: empty values, parsed arguments.
function strip(value) {
  if (Array.isArray(value)) return value.map(strip);
  if (value === null || typeof value !== "object") return value;
  const dropped = new Set(["parsed", "parsed_arguments", "parsed_output"]);
  const entries = Object.entries(value).filter(([key]) => !dropped.has(key));
  const empty = (inner) =>
    inner === null || inner === undefined || (typeof inner === "object" && Object.keys(inner).length === 0);
  return Object.fromEntries(entries.map(([key, inner]) => [key, strip(inner)]).filter(([, inner]) => !empty(inner)));
}

const squeezed = (text) => text.replaceAll(/\s/g, "");

// An edited stream makes the object of the edited whole reply, and says it on the way.
async function sameObject(Api, agent, tools) {
  const sdk = new Api("clean", agent);
  const clean = sdk.comparable(await sdk.whole(tools));
  const whole = sdk.comparable(await new Api("whole", agent).whole(tools));
  const [final, said] = await new Api("streamed", agent).streamed(tools);
  assert.deepEqual(sdk.comparable(final), whole);
  assert.equal(squeezed(said), squeezed(sdk.said(final)));
  const same = JSON.stringify(clean) === JSON.stringify(whole);
  assert.equal(same, agent === "plain", `untouched: ${agent === "plain"}, ${JSON.stringify(whole)}`);
}

async function raised(kind, promise) {
  const error = await promise.then(() => undefined, (error) => error);
  assert.ok(error instanceof kind, `no ${kind.name}: ${error}`);
  return error;
}

const FAULTS = {
  "a provider's own error is the SDK's own exception": async (Api) => {
    for (const call of [() => new Api("whole", "overloaded").whole(), () => new Api("streamed", "overloaded").streamed()]) {
      const error = await raised(Api.overloaded, call());
      assert.equal(error.status, 529);
      assert.ok(error.error, "the SDK read the error's body");
    }
  },
  "an error event under way is the SDK's own exception": async (Api) => {
    const error = await raised(Api.inStream, new Api("streamed", "failing").streamed());
    assert.match(String(error.message), /verloaded/);
  },
  "a 429 that a retry heals goes unnoticed": async (Api) => {
    const sdk = new Api("whole", "limited");
    assert.match(sdk.said(await sdk.whole()), /75/);
  },
};

function* checks() {
  for (const Api of [Responses, Messages]) {
    const name = Api.name.toLowerCase();
    const title = (agent) => `${name}, ${agent}: the streamed object is the whole one`;
    for (const agent of ["plain", "corrupted", "truncated", "ended"]) yield [title(agent), () => sameObject(Api, agent, false)];
    yield [title("plain_with_tools"), () => sameObject(Api, "plain", true)];
    for (const agent of ["redirected", "dropped", "doubled"]) yield [title(agent), () => sameObject(Api, agent, true)];
    for (const [what, check] of Object.entries(FAULTS)) yield [`${name}: ${what}`, () => check(Api)];
  }
}

for (const [check, run] of checks()) {
  try {
    await run();
    console.log(JSON.stringify({ check, ok: true }));
  } catch (error) {
    console.log(JSON.stringify({ check, ok: false, why: `${error.name}: ${error.message}` }));
  }
}
