// What the agents of the tests do, for either SDK: the same as `script.py`, which says what the events are.

export const CARD = { name: "weather", description: "An agent of the tests", version: "1.0.0" };
export const SKILL = { id: "forecast", name: "Forecast", description: "Tells the weather", tags: ["weather"] };

export function* events(text, data, goesOn) {
  const [word, ...words] = text.split(" ");
  const rest = words.join(" ");
  if (word === "say") yield ["message", [`You said ${rest}.`]];
  else if (word === "add") yield ["message", [String(Number(words[0]) + Number(words[1]))]];
  else if (word === "long") yield ["message", ["0123456789".repeat(20_000)]];
  else if (word === "data") yield ["message", ["The data came back:", { given: data }]];
  else if (word === "error") yield ["error", "the agent broke"];
  else if (goesOn) {
    yield ["artifact", "answer", [`Then ${text} it is.`], false, true];
    yield ["status", "completed", null];
  } else {
    yield ["task"];
    yield ["status", "working", "Looking at the sky."];
    yield* tasks(word, rest);
  }
}

function* tasks(word, rest) {
  if (word === "task") {
    yield ["artifact", "forecast", [`Rain in ${rest}.`, { city: rest, degrees: 7 }], false, true];
    yield ["status", "completed", `The forecast for ${rest} is there.`];
  } else if (word === "stream") {
    yield ["artifact", "report", [`Rain in ${rest}, `], false, false];
    yield ["artifact", "report", ["then sun in Köln, "], true, false];
    yield ["artifact", "report", ["then snow ☃."], true, true];
    yield ["status", "working", "Counting clouds."];
    yield ["artifact", "numbers", [{ degrees: [7, 8, 9] }], false, true];
    yield ["status", "completed", "All is told."];
  } else if (word === "fail") yield ["status", "failed", "The sky fell down."];
  else if (word === "ask") yield ["status", "input_required", "Which city?"];
  else if (word === "slow") yield ["wait"];
}
