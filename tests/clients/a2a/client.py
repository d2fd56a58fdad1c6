"""A client of the tests in Python's official SDK, whichever is installed: the same calls in the same order as `client.mjs`.

    client.py URL [CALL …]      URL: where the agent's card lies below; no CALL: all
    client.py URL many=N        N calls, eight at a time, streams and cancellations among them

Prints one JSON line per call, with its keys sorted: what the SDK gave to the program. Only what differs from run to run has other
words: identifiers by the order in which they come, times, and the address.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role

URL, NAMES = sys.argv[1].rstrip("/"), sys.argv[2:]

try:
    from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, SendMessageRequest, SubscribeToTaskRequest
    from google.protobuf.json_format import MessageToDict, ParseDict

    def part(content: Any) -> Part:
        return ParseDict({"data": content}, Part()) if isinstance(content, dict) else Part(text=content)

    def asked(message: Message) -> Any:
        return SendMessageRequest(message=message)

    def plain(told: Any) -> Any:
        return MessageToDict(told)

    def followed(client: Any, task: str) -> AsyncIterator[Any]:
        return client.subscribe(SubscribeToTaskRequest(id=task))

    USER, Get, Cancel = Role.ROLE_USER, GetTaskRequest, CancelTaskRequest

except ImportError:
    from a2a.types import DataPart, TaskIdParams, TaskQueryParams, TextPart

    def part(content: Any) -> Part:
        return Part(root=DataPart(data=content) if isinstance(content, dict) else TextPart(text=content))

    def asked(message: Message) -> Any:
        return message

    def plain(told: Any) -> Any:
        # This SDK adds each update up to a task that it goes on with.
        if isinstance(told, tuple):
            return plain(told[1] or told[0])
        return told.model_dump(mode="json", by_alias=True, exclude_none=True)

    def followed(client: Any, task: str) -> AsyncIterator[Any]:
        return client.resubscribe(TaskIdParams(id=task))

    USER, Get, Cancel = Role.user, TaskQueryParams, TaskIdParams


class Calls:
    """What the program asks for, by name; each gives what is printed."""

    def __init__(self, card: Any, factories: list[ClientFactory]) -> None:
        self.card = card
        self.whole, self.streamed = (factory.create(card) for factory in factories)

    async def said(self, *contents: Any, **ids: str) -> Any:
        """The reply to one message, not streamed."""
        return [plain(told) async for told in self.told(self.whole, *contents, **ids)][-1]

    async def stream(self, *contents: Any, **ids: str) -> list[Any]:
        return [plain(told) async for told in self.told(self.streamed, *contents, **ids)]

    def told(self, client: Any, *contents: Any, **ids: str) -> AsyncIterator[Any]:
        message = Message(message_id=str(uuid4()), role=USER, parts=[part(content) for content in contents], **ids)
        return client.send_message(asked(message))

    async def get_card(self) -> Any:
        return plain(self.card)

    async def got(self) -> Any:
        task = whole(await self.said("task Bonn"))
        return plain(await self.whole.get_task(Get(id=task["id"])))

    async def unknown_task(self) -> Any:
        return plain(await self.whole.get_task(Get(id="never")))

    async def finished(self) -> Any:
        """A task that is over cannot be cancelled."""
        task = whole(await self.said("task Bonn"))
        return plain(await self.whole.cancel_task(Cancel(id=task["id"])))

    async def goes_on(self) -> Any:
        """A task that waits for its user, and the next message of the same conversation."""
        task = whole(await self.said("ask"))
        ids = {"task_id": task["id"], "context_id": task["contextId"]}
        return [task, await self.said("Kiel", **ids), await self.said("say hello", context_id=task["contextId"])]

    async def cancelled(self) -> Any:
        """A task is cancelled while its stream is read; the stream says so and ends."""
        heard, answer = [], None
        async for told in self.told(self.streamed, "slow"):
            heard.append(plain(told))
            if answer is None and "working" in json.dumps(heard[-1]).lower():
                answer = asyncio.create_task(self.cancel_soon(ids(heard[0])))
        return [heard, plain(await answer)]

    async def cancel_soon(self, task: str, seconds: float = 0.05) -> Any:
        await asyncio.sleep(seconds)
        return await self.whole.cancel_task(Cancel(id=task))

    async def left(self) -> Any:
        """A stream is left at its first word; the task goes on until it is cancelled."""
        first = await self.first()
        task = await self.whole.get_task(Get(id=ids(first)))
        return [first, plain(task), plain(await self.whole.cancel_task(Cancel(id=ids(first))))]

    async def subscribed(self) -> Any:
        """A stream that was left is read again, by another call, until the task is cancelled."""
        task = ids(await self.first())
        answer = asyncio.create_task(self.cancel_soon(task, 0.3))
        heard = [plain(told) async for told in followed(self.streamed, task)]
        return [heard, plain(await answer)]

    async def first(self) -> Any:
        """The first word of a stream that is left then; its task has begun."""
        async with aclosing(self.told(self.streamed, "slow")) as stream:
            async for told in stream:
                first = plain(told)
                break
        await asyncio.sleep(0.3)
        return first

    async def parallel(self) -> Any:
        return await asyncio.gather(*(self.said(f"add {number} 100") for number in range(8)))

    async def one(self, number: int) -> bool:
        """One call of many, and whether its reply is right: each third is streamed, each thirtieth is cancelled."""
        if number % 30 == 2:
            heard, answer = await self.cancelled()
            return all("canceled" in json.dumps(told).lower() for told in (heard[-1], answer))
        send = self.stream if number % 3 == 1 else self.said
        return texts(await send(f"add {number} 7")) == [str(number + 7)]

    async def many(self, number: int) -> Any:
        left, wrong = iter(range(number)), 0

        async def work() -> None:
            nonlocal wrong
            for one in left:
                wrong += not await self.one(one)

        await asyncio.gather(*(work() for _ in range(8)))
        return {"asked": number, "wrong": wrong}

    def all(self) -> dict[str, Callable[[], Awaitable[Any]]]:
        return {
            "card": self.get_card,
            "say": lambda: self.said("say Straße ☃"),
            "long": lambda: self.said("long"),
            "data": lambda: self.said("data", {"city": "Köln", "degrees": 7}),
            "task": lambda: self.said("task Berlin"),
            "fail": lambda: self.said("fail"),
            "error": lambda: self.said("error"),
            "unknown_task": self.unknown_task,
            "got": self.got,
            "finished": self.finished,
            "goes_on": self.goes_on,
            "stream": lambda: self.stream("stream Berlin"),
            "stream_say": lambda: self.stream("say streams"),
            "stream_fail": lambda: self.stream("fail"),
            "cancelled": self.cancelled,
            "left": self.left,
            "subscribed": self.subscribed,
            "parallel": self.parallel,
        }


def whole(told: Any) -> Any:
    """The task of a reply, in whatever it is wrapped."""
    return told.get("task", told)


def ids(told: Any) -> str:
    """The task that an event of a stream is about."""
    inner = next((told[kind] for kind in ("task", "statusUpdate", "artifactUpdate") if kind in told), told)
    return inner.get("taskId") or inner["id"]


def texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    if not isinstance(value, dict):
        return []
    return [one for key, other in value.items() for one in ([other] if key == "text" else texts(other))]


class Canonical:
    """Writes a line the same each time: identifiers that were drawn by their order, times and the address by a word."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def line(self, told: dict[str, Any]) -> str:
        line = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        line = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lambda found: self.known.setdefault(found[0], f"id-{len(self.known)}"), line)
        return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME", line).replace(URL, "URL")


def failed(error: Exception) -> dict[str, Any]:
    inner = getattr(error, "error", error)
    words = {key: getattr(inner, key, None) for key in ("code", "message", "data")}
    return {"error": {"kind": type(error).__name__, "words": words["message"] or str(error), "code": words["code"], "data": words["data"]}}


async def main() -> None:
    async with httpx.AsyncClient(timeout=30) as http:
        # A factory first: it makes each request say which version is spoken, that for the card too.
        factories = [ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)) for streaming in (False, True)]
        calls = Calls(await A2ACardResolver(http, URL).get_agent_card(), factories)
        acts = calls.all()
        if NAMES and NAMES[0].startswith("many="):
            acts, names = {"many": lambda: calls.many(int(NAMES[0][5:]))}, ["many"]
        else:
            names = NAMES or list(acts)
        for name in names:
            # Each line counts its identifiers anew.
            try:
                line = {"call": name, "result": await acts[name]()}
            except Exception as error:
                line = {"call": name, **failed(error)}
            print(Canonical().line(line), flush=True)


asyncio.run(main())
