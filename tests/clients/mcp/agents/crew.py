"""What the programs beside it share: the two agents' prompts, their tasks, and the line that says who called what."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

URL = os.environ["AEGIS_MCP_CALC"]
PROMPTS = {name: f"You are the {name}. You do what you are told with the tools." for name in ("clerk", "driver")}
TASKS = json.loads(Path(__file__).with_name("tasks.json").read_text())


def called(agent: str, tool: str, arguments: dict[str, Any] | str) -> None:
    """An agent is about to call a tool: what is true."""
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    print(json.dumps({"agent": agent, "tool": tool, "arguments": arguments}), flush=True)


async def work(do: Callable[[str, str], Awaitable[Any]]) -> None:
    """Give each agent its tasks: one after the other, then both at once."""
    for tasks in TASKS.values():
        await asyncio.gather(*(do(agent, f"Round by round, call: {json.dumps(rounds)}") for agent, rounds in tasks.items()))
    print("FINAL: done", flush=True)
