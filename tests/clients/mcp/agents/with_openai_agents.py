"""OpenAI Agents SDK: two agents that share one MCP connection."""

import asyncio
from typing import Any

import crew
from agents import Agent, OpenAIChatCompletionsModel, RunHooks, Runner
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


class Told(RunHooks):
    """Says who calls what."""

    async def on_tool_start(self, context: Any, agent: Agent, tool: Any) -> None:
        crew.called(agent.name, tool.name, context.tool_arguments)


async def main() -> None:
    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI())
    async with MCPServerStreamableHttp({"url": crew.URL}, name="calc") as server:
        agents = {
            name: Agent(name, instructions=prompt, model=model, mcp_servers=[server]) for name, prompt in crew.PROMPTS.items()
        }
        await crew.work(lambda agent, task: Runner.run(agents[agent], task, hooks=Told()))


asyncio.run(main())
