"""A server of the tests in Python's official SDK, whichever is installed. The same tools as `server.mjs`.

    server.py [MODE]      MODE: plain, json (no streams), resumable (events have ids, in sessions of 2025-11-25), stdio

SDK 1 speaks 2025-11-25, SDK 2 speaks 2026-07-28 as well. Prints its port when it listens; with `stdio` it speaks over standard input
and output.
"""

import asyncio
import base64
import sys
from collections import Counter
from contextlib import suppress
from typing import Annotated, Any

import uvicorn
from pydantic import BaseModel, Field

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context, Elicit, Image, Resolve

    SDK = 2
except ImportError:
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer

    SDK = 1
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore

MODE = sys.argv[1] if sys.argv[1:] else "plain"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KEYS = {"berlin": "Germany — Straße", "long": "0123456789" * 20_000}

# How often each tool ran, and how many slow calls were given up: the same for every session.
RAN: Counter[str] = Counter()
STOPPED = 0


class Row(BaseModel):
    name: str
    count: int


class Table(BaseModel):
    rows: list[Row]


class Sure(BaseModel):
    really: bool


class Events(EventStore):
    """Keeps the events of a session, for a client that asks for those after the last it read."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self.kept[int(last_event_id) - 1][0]
        for number, (of, message) in enumerate(self.kept[int(last_event_id) :], int(last_event_id) + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


HTTP: dict[str, Any] = {"json_response": MODE == "json"}
if MODE == "resumable":
    HTTP |= {"event_store": Events(), "retry_interval": 50}
server = MCPServer("calc", **(HTTP if SDK == 1 else {}))
words = server.tool(structured_output=False)


@words
def add(a: int, b: int) -> str:
    """Adds two whole numbers."""
    RAN["add"] += 1
    return str(a + b)


@words
def lookup(key: str) -> str:
    """Looks a key up."""
    RAN["lookup"] += 1
    return KEYS.get(key, "nothing")


@words
def fail() -> str:
    """Always fails."""
    RAN["fail"] += 1
    raise ValueError("this tool fails")


@words
async def slow(seconds: float, ctx: Context) -> str:
    """Takes its time and says how far it is."""
    global STOPPED
    RAN["slow"] += 1
    try:
        for part in range(1, 5):
            await asyncio.sleep(seconds / 4)
            await ctx.report_progress(part, 4, f"part {part}")
    except asyncio.CancelledError:
        STOPPED += 1
        raise
    return "done"


@words
async def resumed(ctx: Context) -> str:
    """Closes its stream, goes on, and is read on another."""
    RAN["resumed"] += 1
    await ctx.report_progress(1, 2, "before")
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    await ctx.report_progress(2, 2, "after")
    return "read to the end"


@words
def picture() -> Image:
    """A picture."""
    RAN["picture"] += 1
    return Image(data=base64.b64decode(PICTURE), format="png")


@server.tool()
def table() -> Table:
    """A table."""
    RAN["table"] += 1
    return Table(rows=[Row(name="a", count=1), Row(name="b", count=2)])


@words
def route(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], weight: int) -> str:
    """Says where a parcel goes; a client of 2026-07-28 says the region in a header too."""
    RAN["route"] += 1
    return f"{weight} kg to {region}"


@words
def stopped() -> str:
    """How many slow calls were given up."""
    return str(STOPPED)


@words
def ran(tool: str) -> str:
    """How often a tool ran."""
    return str(RAN[tool])


if SDK == 2:

    def ask() -> "Elicit[Sure]":
        return Elicit("Really?", Sure)

    @words
    def remove(key: str, sure: Annotated[Sure, Resolve(ask)]) -> str:
        """Removes a key when it is sure."""
        RAN["remove"] += 1
        return f"removed {key}: {sure.really}".lower()

else:

    @words
    async def remove(key: str, ctx: Context) -> str:
        """Removes a key when it is sure."""
        RAN["remove"] += 1
        said = await ctx.elicit("Really?", Sure)
        return f"removed {key}: {said.data.really}".lower()


@server.resource("note://today")
def note() -> str:
    """Today's note."""
    return "nothing today"


@server.prompt()
def review(text: str) -> str:
    """Asks for a review."""
    return f"Review this: {text}"


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


if MODE == "stdio":
    server.run("stdio")
    sys.exit()
app = server.streamable_http_app(**(HTTP if SDK == 2 else {}))
with suppress(KeyboardInterrupt):
    Server(uvicorn.Config(app, "127.0.0.1", 0, log_level="error", timeout_graceful_shutdown=1)).run()
