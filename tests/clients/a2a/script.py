"""What the agents of the tests do, for either SDK: what a request's first word makes them say. `script.mjs` says the same.

An event is a tuple: ("message", parts), ("task",), ("status", state, text or None), ("artifact", id, parts, append, last), ("wait",)
for somebody to cancel the task, or ("error", text). A part is a text or, as a dictionary, data.
"""

from collections.abc import Iterator
from typing import Any

CARD = {"name": "weather", "description": "An agent of the tests", "version": "1.0.0"}
SKILL = {"id": "forecast", "name": "Forecast", "description": "Tells the weather", "tags": ["weather"]}


def events(text: str, data: Any, goes_on: bool) -> Iterator[tuple[Any, ...]]:
    """What comes of a message; `goes_on` where its task has waited for it."""
    word, _, rest = text.partition(" ")
    if word == "say":
        yield "message", [f"You said {rest}."]
    elif word == "add":
        first, second = map(int, rest.split())
        yield "message", [str(first + second)]
    elif word == "long":
        yield "message", ["0123456789" * 20_000]
    elif word == "data":
        yield "message", ["The data came back:", {"given": data}]
    elif word == "error":
        yield "error", "the agent broke"
    elif goes_on:
        yield "artifact", "answer", [f"Then {text} it is."], False, True
        yield "status", "completed", None
    else:
        yield ("task",)
        yield "status", "working", "Looking at the sky."
        yield from tasks(word, rest)


def tasks(word: str, rest: str) -> Iterator[tuple[Any, ...]]:
    if word == "task":
        yield "artifact", "forecast", [f"Rain in {rest}.", {"city": rest, "degrees": 7}], False, True
        yield "status", "completed", f"The forecast for {rest} is there."
    elif word == "stream":
        yield "artifact", "report", [f"Rain in {rest}, "], False, False
        yield "artifact", "report", ["then sun in Köln, "], True, False
        yield "artifact", "report", ["then snow ☃."], True, True
        yield "status", "working", "Counting clouds."
        yield "artifact", "numbers", [{"degrees": [7, 8, 9]}], False, True
        yield "status", "completed", "All is told."
    elif word == "fail":
        yield "status", "failed", "The sky fell down."
    elif word == "ask":
        yield "status", "input_required", "Which city?"
    elif word == "slow":
        yield ("wait",)
