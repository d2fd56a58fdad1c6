"""AutoGen with autogen-ext's MCP tools: two agents, each with an adapter of its own for each tool."""

import asyncio
from typing import Any

import crew
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools


def told(agent: str, tool: Any) -> Any:
    """The tool, which says that this agent calls it."""
    call = tool.run_json

    async def run_json(arguments: dict[str, Any], *more: Any, **named: Any) -> Any:
        crew.called(agent, tool.name, arguments)
        return await call(arguments, *more, **named)

    tool.run_json = run_json
    return tool


async def main() -> None:
    info = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False, "family": "unknown"}
    model = OpenAIChatCompletionClient(model="scripted", model_info=info)
    agents = {}
    for name, prompt in crew.PROMPTS.items():
        tools = [told(name, tool) for tool in await mcp_server_tools(StreamableHttpServerParams(url=crew.URL))]
        agents[name] = AssistantAgent(name, model, tools=tools, system_message=prompt, max_tool_iterations=9)
    await crew.work(lambda agent, task: agents[agent].run(task=task))
    await model.close()


asyncio.run(main())
