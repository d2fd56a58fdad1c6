"""AutoGen AgentChat: planner, solver (with a calculator) and critic take turns until the critic approves."""

import asyncio
import re
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


def stated(text):
    """The answer that a text states: its last block of code, else what follows its last `ANSWER:`."""
    blocks = re.findall(r"```\w*\n.*?(?:```|\Z)", text, re.S)
    lines = re.findall(r"ANSWER:[ *]*(.+)", text)
    return blocks[-1].strip() if blocks else lines[-1].strip() if lines else "none"


async def main(problem: str) -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o-mini", temperature=0)
    planner = AssistantAgent(
        "planner",
        client,
        system_message="You plan. Break the word problem into short numbered steps. Do not compute anything.",
    )
    solver = AssistantAgent(
        "solver",
        client,
        tools=[calculator],
        reflect_on_tool_use=True,
        system_message="You solve. Follow the plan, compute with the calculator, "
        "and end with a line `ANSWER: <answer>`.",
    )
    critic = AssistantAgent(
        "critic",
        client,
        system_message="You review the solution of a word problem. If it is right, repeat the line "
        "`ANSWER: <answer>` and say APPROVE. If it is wrong, say what is wrong.",
    )
    team = RoundRobinGroupChat(
        [planner, solver, critic],
        termination_condition=TextMentionTermination("APPROVE", sources=["critic"]) | MaxMessageTermination(16),
    )
    result = await team.run(task=problem)
    await client.close()
    for message in result.messages:
        print(f"{message.source}: {message.to_text()}")
    said = [m.to_text() for m in result.messages if m.source == "solver"]
    print("FINAL:", stated(said[-1]) if said else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
