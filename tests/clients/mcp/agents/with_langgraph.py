"""LangGraph with langchain-mcp-adapters: two agents with the tools of one client, a session for each call."""

import asyncio
from typing import Any

import crew
from langchain.agents import create_agent
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


def told(agent: str, tool: BaseTool) -> BaseTool:
    """The tool, which says that this agent calls it."""
    call = tool.coroutine

    async def coroutine(*positional: Any, **arguments: Any) -> Any:
        crew.called(agent, tool.name, {name: value for name, value in arguments.items() if name in tool.args})
        return await call(*positional, **arguments)

    return tool.model_copy(update={"coroutine": coroutine})


async def main() -> None:
    client = MultiServerMCPClient({"calc": {"transport": "streamable_http", "url": crew.URL}})
    tools = await client.get_tools()
    model = ChatOpenAI(model="scripted")
    agents = {
        name: create_agent(model, tools=[told(name, tool) for tool in tools], system_prompt=prompt, name=name)
        for name, prompt in crew.PROMPTS.items()
    }
    await crew.work(lambda agent, task: agents[agent].ainvoke({"messages": [("user", task)]}))


asyncio.run(main())
