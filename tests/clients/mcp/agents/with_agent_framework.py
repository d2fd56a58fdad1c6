"""Microsoft Agent Framework: two agents that share one MCP tool."""

import asyncio
from typing import Any

import crew
from agent_framework import Agent, FunctionInvocationContext, MCPStreamableHTTPTool, function_middleware
from agent_framework.openai import OpenAIChatCompletionClient


def told(agent: str) -> Any:
    """Says that this agent calls a tool."""

    @function_middleware
    async def middleware(context: FunctionInvocationContext, call_next: Any) -> None:
        crew.called(agent, context.function.name, dict(context.arguments))
        await call_next()

    return middleware


async def main() -> None:
    client = OpenAIChatCompletionClient(model="scripted")
    async with MCPStreamableHTTPTool(name="calc", url=crew.URL) as tools:
        agents = {
            name: Agent(client, name=name, instructions=prompt, tools=[tools], middleware=[told(name)])
            for name, prompt in crew.PROMPTS.items()
        }
        await crew.work(lambda agent, task: agents[agent].run(task))


asyncio.run(main())
