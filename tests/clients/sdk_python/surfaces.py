"""openai-python's Responses and anthropic-python's Messages against running proxies, stream helpers included: the
object that an SDK builds from an edited stream is the one it builds from the edited whole reply.

Called with one JSON argument: the address of each proxy (`clean`, `whole`, `streamed`: the latter two under
`plans/surfaces.toml`) and the `run` to record under. Prints one JSON line per check.
"""

import json
import sys

import anthropic
import openai

PROXIES = json.loads(sys.argv[1])

SYSTEM = "You solve word problems. End with a line `ANSWER: <number>`."
CALCULATE = "You solve word problems. Compute with the calculator."
PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"
SCHEMA = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
DESCRIPTION = "Evaluate an arithmetic expression such as 3 * (4 + 5)."


class Responses:
    """openai-python, `/v1/responses`."""

    name = "responses"
    overloaded = openai.InternalServerError
    in_stream = openai.APIError

    def __init__(self, proxy, agent):
        url = f"{PROXIES[proxy]}/r/{PROXIES['run']}-responses/a/{agent}/v1"
        self.sdk = openai.OpenAI(base_url=url, api_key="sk-client-tests")

    def options(self, tools):
        tool = {"type": "function", "name": "calculator", "description": DESCRIPTION, "parameters": SCHEMA}
        more = {"tools": [tool | {"strict": False}]} if tools else {}
        return {"model": "gpt-5", "instructions": CALCULATE if tools else SYSTEM, "input": PROBLEM} | more

    def whole(self, tools=False):
        return self.sdk.responses.create(**self.options(tools))

    def streamed(self, tools=False):
        """The final object, and what was said on the way. The helper takes a response that was cut for none at all, and
        hands an error on as an event: both are the SDK's own way, so they are read off the events here."""
        said, final = [], None
        with self.sdk.responses.stream(**self.options(tools)) as stream:
            for event in stream:
                if event.type in ("response.output_text.delta", "response.function_call_arguments.delta"):
                    said.append(event.delta)
                elif event.type == "error":
                    raise openai.APIError(event.message, request=None, body=event.model_dump())
                elif event.type in ("response.completed", "response.incomplete"):
                    final = event.response
            if final.status == "completed":
                final = stream.get_final_response()
            return final, "".join(said)

    def said(self, response):
        calls = [item.arguments for item in response.output if item.type == "function_call"]
        return response.output_text + "".join(calls)

    def comparable(self, response):
        kept = ("output", "status", "incomplete_details")
        return strip({key: value for key, value in response.model_dump().items() if key in kept})


class Messages:
    """anthropic-python, `/v1/messages`."""

    name = "messages"
    overloaded = anthropic.APIStatusError
    in_stream = anthropic.APIStatusError

    def __init__(self, proxy, agent):
        url = f"{PROXIES[proxy]}/r/{PROXIES['run']}-messages/a/{agent}"
        self.sdk = anthropic.Anthropic(base_url=url, api_key="sk-client-tests")

    def options(self, tools):
        tool = {"name": "calculator", "description": DESCRIPTION, "input_schema": SCHEMA}
        more = {"tools": [tool]} if tools else {}
        messages = [{"role": "user", "content": PROBLEM}]
        return {"model": "claude", "max_tokens": 512, "system": CALCULATE if tools else SYSTEM, "messages": messages} | more

    def whole(self, tools=False):
        return self.sdk.messages.create(**self.options(tools))

    def streamed(self, tools=False):
        said = []
        with self.sdk.messages.stream(**self.options(tools)) as stream:
            for event in stream:
                if event.type == "text":
                    said.append(event.text)
                elif event.type == "input_json":
                    said.append(event.partial_json)
            return stream.get_final_message(), "".join(said)

    def said(self, message):
        parts = [block.text if block.type == "text" else json.dumps(block.input) for block in message.content]
        return "".join(parts)

    def comparable(self, message):
        kept = ("content", "stop_reason", "stop_sequence", "role")
        return strip({key: value for key, value in message.model_dump().items() if key in kept})


def strip(value):
    """Without what only one form fills in: empty values, parsed arguments."""
    if isinstance(value, dict):
        dropped = ("parsed", "parsed_arguments", "parsed_output")
        items = {key: strip(inner) for key, inner in value.items() if key not in dropped}
        return {key: inner for key, inner in items.items() if inner not in (None, [], {})}
    return [strip(inner) for inner in value] if isinstance(value, list) else value


def squeezed(text):
    return "".join(text.split())


def same_object(api, agent, tools):
    """An edited stream makes the object of the edited whole reply, and says it on the way."""
    clean = api("clean", agent).whole(tools)
    whole = api("whole", agent).whole(tools)
    final, said = api("streamed", agent).streamed(tools)
    sdk = api("clean", agent)
    first, second = sdk.comparable(whole), sdk.comparable(final)
    assert first == second, f"{first}\n!=\n{second}"
    assert squeezed(said) == squeezed(sdk.said(final)), f"{said!r} on the way, {sdk.said(final)!r} at the end"
    untouched = agent == "plain"
    assert (sdk.comparable(clean) == first) == untouched, f"untouched: {untouched}, {first}"


def overloaded(api):
    """A provider's own error is the SDK's own exception."""
    for proxy in ("whole", "streamed"):
        sdk = api(proxy, "overloaded")
        try:
            sdk.whole() if proxy == "whole" else sdk.streamed()
        except sdk.overloaded as error:
            assert error.status_code == 529, error.status_code
            assert error.body, "the SDK read the error's body"
        else:
            raise AssertionError("no error")


def failing(api):
    """An error event under way is the SDK's own exception."""
    sdk = api("streamed", "failing")
    try:
        sdk.streamed()
    except sdk.in_stream as error:
        assert "verloaded" in str(error), str(error)
    else:
        raise AssertionError("no error")


def limited(api):
    """A 429 that a retry heals goes unnoticed."""
    assert "75" in api("clean", "limited").said(api("whole", "limited").whole())


def checks():
    for api in (Responses, Messages):
        for agent in ("plain", "corrupted", "truncated", "ended"):
            yield f"{api.name}, {agent}: the streamed object is the whole one", lambda a=api, g=agent: same_object(a, g, False)
        for agent in ("plain", "redirected", "dropped", "doubled"):
            name = f"{agent}_with_tools" if agent == "plain" else agent
            yield f"{api.name}, {name}: the streamed object is the whole one", lambda a=api, g=agent: same_object(a, g, True)
        for check in (overloaded, failing, limited):
            yield f"{api.name}, {check.__name__}: {check.__doc__}", lambda a=api, c=check: c(a)


def main():
    for name, function in checks():
        line = {"check": name, "ok": True}
        try:
            function()
        except Exception as error:
            line = {"check": name, "ok": False, "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
