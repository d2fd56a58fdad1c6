"""Pydantic AI: two agents, each with an MCP toolset of its own."""

import asyncio
from typing import Any

import crew
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel


def toolset(agent: str) -> MCPToolset:
    """The server's tools, and a line for each call by this agent."""

    async def told(_context: Any, call: Any, name: str, arguments: dict[str, Any]) -> Any:
        crew.called(agent, name, arguments)
        return await call(name, arguments)

    return MCPToolset(crew.URL, process_tool_call=told)


async def main() -> None:
    model = OpenAIChatModel("scripted")
    agents = {name: Agent(model, system_prompt=prompt, toolsets=[toolset(name)]) for name, prompt in crew.PROMPTS.items()}
    await crew.work(lambda agent, task: agents[agent].run(task))


asyncio.run(main())
