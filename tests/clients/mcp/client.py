"""A client of the tests in Python's official SDK, whichever is installed: the same calls in the same order as `client.mjs`.

    client.py URL [CALL …]      no CALL: all
    client.py URL many=N        N calls, eight at a time

URL may be a list in JSON: the command of a server that speaks over standard input and output.

SDK 1 speaks 2025-11-25, SDK 2 asks for 2026-07-28. Prints one JSON line per call, with its keys sorted: what the SDK gave to the
program, nothing left out.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

URL, NAMES = sys.argv[1], sys.argv[2:]
COMMAND = json.loads(URL) if URL.startswith("[") else None
STDIO = COMMAND and StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])


async def sure(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"really": True})


try:
    from mcp import Client, MCPError

    @asynccontextmanager
    async def connected() -> AsyncIterator[Any]:
        async with Client(STDIO or URL, elicitation_callback=sure) as client:
            yield client

except ImportError:
    from mcp import McpError as MCPError
    from mcp.client.streamable_http import streamable_http_client

    @asynccontextmanager
    async def connected() -> AsyncIterator[Any]:
        opened = stdio_client(STDIO) if STDIO else streamable_http_client(URL)
        async with opened as (read, write, *_), ClientSession(read, write, elicitation_callback=sure) as client:
            await client.initialize()
            yield client


class Calls:
    """What the program asks for, by name; each gives what is printed."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def tool(self, tool: str, /, progress: Any = None, **arguments: Any) -> Awaitable[Any]:
        return self.client.call_tool(tool, arguments, progress_callback=progress)

    async def with_progress(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        heard: list[Any] = []

        async def progress(*said: Any) -> None:
            heard.append(said)

        result = await self.tool(tool, progress, **arguments)
        return {"heard": heard, "result": result}

    async def text(self, tool: str) -> str:
        return (await self.tool(tool)).content[0].text

    async def gave_up(self) -> dict[str, int]:
        """A slow call is given up; the server must learn of it."""
        before = int(await self.text("stopped"))
        call = asyncio.ensure_future(self.tool("slow", self.nothing, seconds=40))
        await asyncio.sleep(0.3)
        call.cancel()
        if hasattr(self.client, "send_notification"):
            # SDK 1 says nothing of its own when a call is given up; this was its last request.
            params = types.CancelledNotificationParams(requestId=self.client._request_id - 1, reason="enough")
            await self.client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        with suppress(asyncio.CancelledError):
            await call
            raise RuntimeError("the call was answered")
        for _ in range(50):
            if stopped := int(await self.text("stopped")) - before:
                return {"stopped": stopped}
            await asyncio.sleep(0.1)
        return {"stopped": 0}

    @staticmethod
    async def nothing(*_said: Any) -> None: ...

    async def route(self) -> Any:
        # What goes into headers is known from the list.
        await self.client.list_tools()
        return await self.tool("route", region="Köln", weight=3)

    async def parallel(self) -> list[Any]:
        return await asyncio.gather(*(self.tool("add", a=number, b=100) for number in range(8)))

    async def many(self, number: int) -> dict[str, int]:
        left, wrong = iter(range(number)), 0

        async def worker() -> None:
            nonlocal wrong
            for one in left:
                result = await self.tool("add", a=one, b=7)
                wrong += result.content[0].text != str(one + 7)

        await asyncio.gather(*(worker() for _ in range(8)))
        return {"asked": number, "wrong": wrong}

    def all(self) -> dict[str, Callable[[], Awaitable[Any]]]:
        return {
            "list": lambda: self.client.list_tools(),
            "add": lambda: self.tool("add", a=2, b=3),
            "unicode": lambda: self.tool("lookup", key="berlin"),
            "long": lambda: self.tool("lookup", key="long"),
            "table": lambda: self.tool("table"),
            "fail": lambda: self.tool("fail"),
            "unknown_tool": lambda: self.tool("nonsense"),
            "wrong_arguments": lambda: self.tool("add", a="two"),
            "route": self.route,
            "picture": lambda: self.tool("picture"),
            "resource": lambda: self.client.read_resource("note://today"),
            "unknown_resource": lambda: self.client.read_resource("note://never"),
            "prompt": lambda: self.client.get_prompt("review", {"text": "abc"}),
            "slow": lambda: self.with_progress("slow", seconds=0.4),
            "resumed": lambda: self.with_progress("resumed"),
            "remove": lambda: self.tool("remove", key="k"),
            "parallel": self.parallel,
            "cancelled": self.gave_up,
        }


def plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(type(value).__name__)


def show(**line: Any) -> None:
    print(json.dumps(line, sort_keys=True, ensure_ascii=False, default=plain), flush=True)


async def main() -> None:
    async with connected() as client:
        calls = Calls(client)
        acts = calls.all()
        if NAMES and NAMES[0].startswith("many="):
            acts = {"many": lambda: calls.many(int(NAMES[0].removeprefix("many=")))}
        for name in acts if not NAMES or "many" in acts else NAMES:
            try:
                show(call=name, result=await acts[name]())
            except MCPError as error:
                show(call=name, error={"code": error.error.code, "message": error.error.message, "data": error.error.data})


asyncio.run(main())
