"""Semantic Kernel: two experts at once, then a writer and a reviewer in a round robin; every reply is streamed."""

import asyncio
import sys

from semantic_kernel.agents import (
    ChatCompletionAgent,
    ConcurrentOrchestration,
    GroupChatOrchestration,
    RoundRobinGroupChatManager,
)
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


def agent(name: str, instructions: str) -> ChatCompletionAgent:
    service = OpenAIChatCompletion(ai_model_id="gpt-4o-mini")
    return ChatCompletionAgent(name=name, description=name, instructions=instructions, service=service)


async def main(problem: str) -> None:
    runtime = InProcessRuntime()
    runtime.start()
    experts = [
        agent("Planner", "You plan the work in numbered steps."),
        agent("Solver", "You solve word problems. End with a line `ANSWER: <number>`."),
    ]
    heard = await (await ConcurrentOrchestration(members=experts).invoke(problem, runtime)).get()
    members = [agent("Writer", "You write the answer down."), agent("Reviewer", "You review what was written.")]
    chat = GroupChatOrchestration(members=members, manager=RoundRobinGroupChatManager(max_rounds=4))
    result = await (await chat.invoke(f"{problem}\n{heard[0].content}\n{heard[1].content}", runtime)).get()
    await runtime.stop_when_idle()
    print("FINAL:", result.content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
