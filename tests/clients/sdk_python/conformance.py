"""openai-python against running proxies: what a program sees through the SDK's own objects and error classes.

Called with one JSON argument: the address of each proxy (`clean`, `edited_whole`, `edited_streamed`, `faulty`,
`no_upstream`) and the `run` to record under. Prints one JSON line per check. Works with openai 1.40 and later.
"""

import asyncio
import json
import sys
import time

import openai
from pydantic import BaseModel

PROXIES = json.loads(sys.argv[1])
CHECKS = []

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"
SOLVE = [
    {"role": "system", "content": "You solve word problems. End with a line `ANSWER: <number>`."},
    {"role": "user", "content": PROBLEM},
]
CALCULATE = [
    {"role": "system", "content": "You solve word problems. Compute with the calculator."},
    {"role": "user", "content": PROBLEM},
]
CALCULATOR = {
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Evaluate an arithmetic expression such as 3 * (4 + 5).",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
FORCED = {"type": "function", "function": {"name": "calculator"}}


class Solution(BaseModel):
    """What the structured-output checks ask for."""

    steps: list[str]
    answer: int


def check(function):
    """Register a check; its docstring is its name."""
    CHECKS.append(function)
    return function


def base(proxy, agent):
    return f"{PROXIES[proxy]}/r/{PROXIES['run']}/a/{agent}/v1"


def client(proxy, agent, **options):
    return openai.OpenAI(base_url=base(proxy, agent), api_key="sk-client-tests", **options)


def create(sdk, messages=None, **options):
    return sdk.chat.completions.create(model="gpt-4o-mini", messages=messages or SOLVE, **options)


def helper(sdk, name):
    """`parse` and `stream` moved out of `beta` after 1.40."""
    completions = sdk.chat.completions
    return getattr(completions, name, None) or getattr(sdk.beta.chat.completions, name)


def joined(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def same(first, second):
    assert first == second, f"{first!r} != {second!r}"


def contains(text, part):
    assert part in text, f"no {part!r} in {text!r}"


def raised(kind, function):
    """Run `function`, which is to raise exactly `kind`; gives the exception back."""
    try:
        value = function()
    except Exception as error:
        assert type(error) is kind, f"{type(error).__name__} where {kind.__name__} was expected: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}, but {str(value)[:200]!r}")


def comparable(completion):
    """An SDK object without what differs between two calls by nature."""
    choices = [choice.model_dump() for choice in completion.choices]
    for choice in choices:
        for call in choice["message"].get("tool_calls") or []:
            call.pop("index", None)
            call.pop("id", None)
            call.get("function", {}).pop("parsed_arguments", None)
        choice["message"].pop("parsed", None)
    return json.loads(json.dumps(choices), object_hook=lambda o: {k: v for k, v in o.items() if v not in (None, [])})


@check
def whole_reply():
    """a whole reply is read"""
    completion = create(client("clean", "whole"))
    contains(completion.choices[0].message.content, "ANSWER: 75")
    same(completion.choices[0].finish_reason, "stop")
    assert completion.usage.total_tokens > 0


@check
def streamed_reply():
    """a streamed reply comes in pieces and says what the whole one says"""
    whole = create(client("clean", "whole_first")).choices[0].message.content
    with create(client("clean", "streamed"), stream=True) as stream:
        chunks = list(stream)
    same(joined(chunks), whole)
    assert len(chunks) > 3, f"only {len(chunks)} chunks"
    same([c.choices[0].finish_reason for c in chunks if c.choices][-1], "stop")
    assert all(c.usage is None for c in chunks), "usage that nobody asked for"


@check
def streamed_usage():
    """a stream carries usage in its last chunk if asked to"""
    stream = create(client("clean", "usage"), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    same(chunks[-1].choices, [])
    assert chunks[-1].usage.total_tokens > 0


@check
def stream_helper():
    """the stream helper assembles the same completion as a whole call"""
    with helper(client("clean", "helper"), "stream")(model="gpt-4o-mini", messages=SOLVE) as stream:
        final = stream.get_final_completion()
    same(comparable(final), comparable(create(client("clean", "helper_whole"))))


@check
def several_choices():
    """two choices come back as two, whole and streamed"""
    same([c.index for c in create(client("clean", "choices"), n=2).choices], [0, 1])
    indexes = {c.choices[0].index for c in create(client("clean", "choices_streamed"), n=2, stream=True) if c.choices}
    same(indexes, {0, 1})


@check
def tool_loop():
    """a tool call is read, its result goes back, the answer uses it"""
    sdk = client("clean", "tools")
    first = create(sdk, CALCULATE, tools=[CALCULATOR], tool_choice=FORCED).choices[0]
    call = first.message.tool_calls[0]
    same(call.function.name, "calculator")
    expression = json.loads(call.function.arguments)["expression"]
    same(eval(expression, {"__builtins__": {}}), 75)
    result = {"role": "tool", "tool_call_id": call.id, "content": "75"}
    history = CALCULATE + [first.message.model_dump(exclude_none=True), result]
    contains(create(sdk, history, tools=[CALCULATOR]).choices[0].message.content, "75")


@check
def tool_call_streamed():
    """a streamed tool call assembles to the whole one, and its finish reason is kept"""
    whole = create(client("clean", "call"), CALCULATE, tools=[CALCULATOR], tool_choice="required")
    options = {"model": "gpt-4o-mini", "messages": CALCULATE, "tools": [CALCULATOR], "tool_choice": "required"}
    with helper(client("clean", "call_streamed"), "stream")(**options) as stream:
        final = stream.get_final_completion()
    same(comparable(final), comparable(whole))
    assert final.choices[0].message.tool_calls


@check
def structured():
    """a structured reply is parsed into the user's own class, whole and streamed"""
    options = {"model": "gpt-4o-mini", "messages": SOLVE, "response_format": Solution}
    whole = helper(client("clean", "parse"), "parse")(**options).choices[0].message.parsed
    same((type(whole), whole.answer), (Solution, 75))
    with helper(client("clean", "parse_streamed"), "stream")(**options) as stream:
        same(stream.get_final_completion().choices[0].message.parsed, whole)


@check
def models():
    """the list of models is passed through"""
    assert [model.id for model in client("clean", "models").models.list()]


@check
def concurrent():
    """sixteen overlapping calls of one client each get their own answer"""

    async def ask(sdk, boxes):
        messages = [SOLVE[0], {"role": "user", "content": PROBLEM.replace("12", str(boxes))}]
        completion = await create(sdk, messages, stream=boxes % 2 == 0)
        if boxes % 2:
            return completion.choices[0].message.content
        return joined([chunk async for chunk in completion])

    async def everybody():
        async with openai.AsyncOpenAI(base_url=base("clean", "crowd"), api_key="sk-client-tests") as sdk:
            return await asyncio.gather(*(ask(sdk, boxes) for boxes in range(20, 36)))

    for boxes, text in zip(range(20, 36), asyncio.run(everybody())):
        contains(text, f"ANSWER: {boxes * 7 - 9}")


@check
def left_early():
    """a stream left after its first chunk leaves the client usable"""
    sdk = client("clean", "left")
    stream = create(sdk, stream=True)
    next(iter(stream))
    stream.close()
    contains(create(sdk).choices[0].message.content, "ANSWER: 75")


@check
def aborted():
    """a stream that hangs midway can be aborted at once, and the next call works"""
    sdk = client("faulty", "hangs")
    started = time.monotonic()
    stream = create(sdk, stream=True)
    seen = [next(iter(stream)) for _ in range(2)]
    stream.close()
    same(len(seen), 2)
    assert time.monotonic() - started < 5, "the abort took 5 s"
    contains(create(sdk).choices[0].message.content, "ANSWER: 75")


def edited_twins(agent, messages=None, **options):
    """The same call under the same plan in two runs of one name, so with the same draws: once whole, once streamed."""
    request = {"model": "gpt-4o-mini", "messages": messages or SOLVE, **options}
    whole = client("edited_whole", agent).chat.completions.create(**request)
    with helper(client("edited_streamed", agent), "stream")(**request) as stream:
        streamed = stream.get_final_completion()
    untouched = client("clean", f"{agent}_untouched").chat.completions.create(**request)
    same(comparable(streamed), comparable(whole))
    assert comparable(whole) != comparable(untouched), "nothing was edited"
    return whole.choices[0].message


@check
def corrupt_number():
    """corrupt_number: the edited stream and the edited whole reply build the same object"""
    assert "ANSWER: 75" not in edited_twins("corrupted").content


@check
def replace_text():
    """replace_text: the same, with a longer text than the one replaced"""
    contains(edited_twins("replaced").content, "THE RESULT IS")


@check
def truncate_output():
    """truncate_output: the same, with a shorter text and finish reason `length`"""
    whole = create(client("edited_whole", "truncated")).choices[0]
    # The stream helper raises at finish reason `length`, so the chunks are joined here.
    chunks = list(create(client("edited_streamed", "truncated"), stream=True))
    same(joined(chunks), whole.message.content)
    same([c.choices[0].finish_reason for c in chunks if c.choices][-1], whole.finish_reason)
    same(whole.finish_reason, "length")
    untouched = create(client("clean", "truncated_untouched")).choices[0].message.content
    assert untouched.startswith(whole.message.content) and untouched != whole.message.content, whole.message.content


@check
def edit_tool_call():
    """edit_tool_call: the same, on the arguments of a tool call"""
    message = edited_twins("redirected", CALCULATE, tools=[CALCULATOR], tool_choice="required")
    same(json.loads(message.tool_calls[0].function.arguments), {"expression": "1 + 1"})


@check
def edited_structured():
    """corrupt_number: an edited structured reply still parses, with another number"""
    options = {"model": "gpt-4o-mini", "messages": SOLVE, "response_format": Solution}
    whole = helper(client("edited_whole", "form"), "parse")(**options).choices[0].message.parsed
    with helper(client("edited_streamed", "form"), "stream")(**options) as stream:
        streamed = stream.get_final_completion().choices[0].message.parsed
    same(streamed, whole)
    untouched = helper(client("clean", "form_untouched"), "parse")(**options).choices[0].message.parsed
    assert whole != untouched, "nothing was edited"


@check
def healed():
    """a 429 and a 500 on the first attempt are retried by the SDK without the program noticing"""
    contains(create(client("faulty", "limited_once")).choices[0].message.content, "ANSWER: 75")
    contains(create(client("faulty", "broken_once")).choices[0].message.content, "ANSWER: 75")
    contains(joined(create(client("faulty", "broken_once_streamed"), stream=True)), "ANSWER: 75")


STATUS_ERRORS = [
    ("status_400", openai.BadRequestError, 400),
    ("status_401", openai.AuthenticationError, 401),
    ("status_403", openai.PermissionDeniedError, 403),
    ("status_404", openai.NotFoundError, 404),
    ("status_429", openai.RateLimitError, 429),
    ("status_500", openai.InternalServerError, 500),
    ("status_503", openai.InternalServerError, 503),
]


@check
def error_classes():
    """injected statuses raise the SDK's own error classes, with message and type"""
    for agent, kind, status in STATUS_ERRORS:
        error = raised(kind, lambda agent=agent: create(client("faulty", agent, max_retries=0)))
        same(error.status_code, status)
        assert isinstance(error.body, dict) and error.body.get("message") and error.body.get("type"), error.body
        contains(str(error), error.body["message"])


@check
def retries_exhausted():
    """a 500 on every attempt is raised after the SDK's two retries"""
    error = raised(openai.InternalServerError, lambda: create(client("faulty", "broken_always")))
    same(error.status_code, 500)


@check
def timed_out():
    """a reply that is late raises a time-out"""
    raised(openai.APITimeoutError, lambda: create(client("faulty", "late", max_retries=0, timeout=0.3)))


@check
def reset():
    """a reset connection raises a connection error"""
    raised(openai.APIConnectionError, lambda: create(client("faulty", "reset", max_retries=0)))


@check
def cut():
    """a stream cut midway gives its chunks, then raises; a clean cut ends without an error"""
    stream = iter(create(client("faulty", "cut"), stream=True))
    next(stream)
    try:
        rest = list(stream)
    except Exception:
        rest = None
    assert rest is None, f"the cut went unnoticed after {len(rest or [])} chunks"
    short = joined(create(client("faulty", "cut_clean"), stream=True))
    assert "ANSWER: 75" not in short, short


@check
def cut_whole():
    """a whole reply cut midway raises an error"""
    try:
        completion = create(client("faulty", "cut_whole", max_retries=0))
    except Exception:
        return
    raise AssertionError(f"the cut went unnoticed: {completion}")


@check
def no_upstream():
    """an upstream that cannot be reached raises a server error that says so"""
    error = raised(openai.InternalServerError, lambda: create(client("no_upstream", "alone", max_retries=0)))
    assert error.status_code in (502, 503, 504), error.status_code
    assert isinstance(error.body, dict) and error.body.get("message"), error.body


@check
def doubled_version():
    """a doubled `/v1` is answered with the fix"""
    sdk = openai.OpenAI(base_url=base("clean", "doubled") + "/v1", api_key="sk-client-tests", max_retries=0)
    error = raised(openai.NotFoundError, lambda: create(sdk))
    contains(str(error), "/v1")


def main():
    for function in CHECKS:
        line = {"check": function.__doc__, "ok": True}
        try:
            function()
        except Exception as error:
            line = {"check": function.__doc__, "ok": False, "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
