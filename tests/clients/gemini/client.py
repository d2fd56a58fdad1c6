"""What Google's own SDK makes of a backend: one JSON line a check, whole, streamed, with tools, by chats and interactions.

    client.py AGENT_URL_PREFIX [NAME …]      `{}` in the prefix stands for the agent; NAME: the checks to make

Each check calls as an agent of its own name. What the SDK raises is a line too.
"""

import asyncio
import json
import sys

from google import genai
from google.genai import types

MODEL = "gemini-3-flash-preview"
QUESTION = "What is 12 + 30?"
CALCULATOR = {
    "name": "calculator",
    "description": "Computes an expression.",
    "parameters": {"type": "OBJECT", "properties": {"expression": {"type": "STRING"}}, "required": ["expression"]},
}
FUNCTION = {**CALCULATOR, "type": "function", "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}


def usage(counted):
    return [counted.prompt_token_count, counted.candidates_token_count]


def whole(client):
    reply = client.models.generate_content(model=MODEL, contents=QUESTION, config={"system_instruction": "You solve.", "temperature": 0})
    return [reply.text, str(reply.candidates[0].finish_reason.value), usage(reply.usage_metadata), reply.model_version]


def streamed(client):
    chunks = list(client.models.generate_content_stream(model=MODEL, contents=QUESTION, config={"system_instruction": "You solve."}))
    return ["".join(chunk.text or "" for chunk in chunks), str(chunks[-1].candidates[0].finish_reason.value), usage(chunks[-1].usage_metadata)]


def asynchronous(client):
    async def ask():
        said = [chunk.text or "" async for chunk in await client.aio.models.generate_content_stream(model=MODEL, contents=QUESTION)]
        return ["".join(said), (await client.aio.models.generate_content(model=MODEL, contents=QUESTION)).text]

    return asyncio.run(ask())


def tools(client, ask):
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[CALCULATOR])], automatic_function_calling={"disable": True})
    contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    content = ask(client, contents, config)
    calls = [part.function_call for part in content.parts if part.function_call]
    contents.append(content)
    answered = [types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"result": "42"})) for call in calls]
    contents.append(types.Content(role="user", parts=answered))
    said = ask(client, contents, config)
    return [[[call.name, call.args] for call in calls], "".join(part.text or "" for part in said.parts)]


def ask_whole(client, contents, config):
    return client.models.generate_content(model=MODEL, contents=contents, config=config).candidates[0].content


def ask_streamed(client, contents, config):
    parts = []
    for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=config):
        parts += (chunk.candidates[0].content and chunk.candidates[0].content.parts) or []
    return types.Content(role="model", parts=parts)


def automatic(client):
    def calculator(expression: str) -> str:
        """Computes an expression."""
        return str(sum(int(part) for part in expression.split("+")))

    return client.models.generate_content(model=MODEL, contents=QUESTION, config={"tools": [calculator]}).text


def chat(client):
    chat = client.chats.create(model=MODEL)
    return [chat.send_message(QUESTION).text, "".join(chunk.text or "" for chunk in chat.send_message_stream("What is 1 + 1?"))]


def schema(client):
    wanted = {"type": "OBJECT", "properties": {"answer": {"type": "INTEGER"}}, "required": ["answer"]}
    config = {"response_mime_type": "application/json", "response_schema": wanted}
    return client.models.generate_content(model=MODEL, contents=QUESTION, config=config).parsed


def interaction(client):
    made = client.interactions.create(model=MODEL, input=QUESTION, system_instruction="You solve.")
    return [said(made.steps), made.status, [made.usage.total_input_tokens, made.usage.total_output_tokens]]


def said(steps):
    contents = [content for step in steps if step.type == "model_output" for content in step.content]
    return "".join(content.text for content in contents if content.type == "text")


def interaction_streamed(client):
    text, status, counted = "", None, None
    for event in client.interactions.create(model=MODEL, input=QUESTION, system_instruction="You solve.", stream=True):
        if event.event_type == "step.delta" and event.delta.type == "text":
            text += event.delta.text
        if event.event_type == "interaction.completed":
            status, counted = event.interaction.status, event.interaction.usage
        if event.event_type == "error":
            raise RuntimeError(f"error event {event.error.code}: {event.error.message}")
    return [text, status, counted and [counted.total_input_tokens, counted.total_output_tokens]]


def interaction_tools(client):
    first = client.interactions.create(model=MODEL, input=QUESTION, tools=[FUNCTION])
    calls = [step for step in first.steps if step.type == "function_call"]
    results = [{"type": "function_result", "call_id": call.id, "name": call.name, "result": "42"} for call in calls]
    second = client.interactions.create(model=MODEL, input=results, previous_interaction_id=first.id, tools=[FUNCTION])
    return [first.status, [[call.name, call.arguments] for call in calls], said(second.steps)]


def interaction_stored(client):
    first = client.interactions.create(model=MODEL, input=QUESTION)
    return [said(client.interactions.get(first.id).steps), first.status]


CHECKS = {
    "whole": whole,
    "streamed": streamed,
    "asynchronous": asynchronous,
    "tools": lambda client: tools(client, ask_whole),
    "tools_streamed": lambda client: tools(client, ask_streamed),
    "automatic": automatic,
    "chat": chat,
    "schema": schema,
    "interaction": interaction,
    "interaction_streamed": interaction_streamed,
    "interaction_tools": interaction_tools,
    "interaction_stored": interaction_stored,
}


def raised(error):
    status = getattr(error, "code", None) or getattr(error, "status_code", None)
    return {"raised": type(error).__name__, "status": status if isinstance(status, int) else None}


def main():
    prefix, *names = sys.argv[1:]
    for name in names or CHECKS:
        # `check:agent`: as another agent.
        check, _, agent = name.partition(":")
        options = {"timeout": 20_000, "retry_options": {"attempts": 1}}
        if prefix != "-":
            options["base_url"] = prefix.replace("{}", agent or check)
        client = genai.Client(**({} if prefix == "-" else {"api_key": "none"}), http_options=options)
        try:
            seen = CHECKS[check](client)
        except Exception as error:  # What the SDK makes of a fault is what is looked at.
            seen = raised(error)
        print(json.dumps({"check": name, "seen": seen}), flush=True)


main()
