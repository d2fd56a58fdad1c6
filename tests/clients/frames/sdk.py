"""Two agents on openai-python's WebSocket of the Responses API: one with a tool, streamed; one on two streams at once.

    sdk.py BASE_OF_PLANNER BASE_OF_CRITIC      prints what each was sent, a JSON line a message, as it came
"""

import asyncio
import json
import sys

from openai import AsyncOpenAI

TOOL = {"type": "function", "name": "calculator", "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}}}
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


async def response(connection, who):
    """Read one response; gives its last event."""
    while True:
        raw = (await connection.recv_bytes()).decode()
        print(json.dumps({"agent": who, "message": raw}, ensure_ascii=False), flush=True)
        event = connection.parse_event(raw)
        if event.type in ENDS:
            return event


async def planner(base):
    async with AsyncOpenAI(base_url=base, api_key="sk-none").responses.connect() as connection:
        question = [{"role": "user", "content": "How many pencils are 12 boxes of 8? É"}]
        await connection.response.create(model="gpt-5-mini", input=question, tools=[TOOL])
        first = (await response(connection, "planner")).response
        called = first.output[0]
        given = {"type": "function_call_output", "call_id": called.call_id, "output": str(eval(json.loads(called.arguments)["expression"]))}
        await connection.response.create(model="gpt-5-mini", input=[given], tools=[TOOL], previous_response_id=first.id)
        await response(connection, "planner")


async def critic(base):
    async with AsyncOpenAI(base_url=base, api_key="sk-none").responses.connect() as connection:
        await connection.response.create(model="gpt-5-mini", input="Is it right?", stream_id="a")
        await response(connection, "critic")
        for lane in ("a", "b"):
            await connection.response.create(model="gpt-5-mini", input=f"Is {lane} right?", stream_id=lane)
        for _ in ("a", "b"):
            await response(connection, "critic")


async def main():
    await planner(sys.argv[1])
    await critic(sys.argv[2])


asyncio.run(main())
