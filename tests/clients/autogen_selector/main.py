"""AutoGen AgentChat: a model picks who speaks next; the solver streams, and hands its calls to a calculator."""

import asyncio
import re
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

PROBLEM = "A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?"


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
        description="Makes the plan; speaks first.",
        system_message="You plan. Break the word problem into short numbered steps. Do not compute anything.",
    )
    solver = AssistantAgent(
        "solver",
        client,
        description="Carries the plan out with a calculator; speaks after the planner.",
        tools=[calculator],
        reflect_on_tool_use=True,
        model_client_stream=True,
        system_message="You solve. Follow the plan, compute with the calculator, "
        "and end with a line `ANSWER: <answer>`.",
    )
    critic = AssistantAgent(
        "critic",
        client,
        description="Checks the solver's answer; speaks last.",
        system_message="You review the solution of a word problem. If it is right, repeat the line "
        "`ANSWER: <answer>` and say TERMINATE. If it is wrong, say what is wrong.",
    )
    team = SelectorGroupChat(
        [planner, solver, critic],
        model_client=client,
        termination_condition=TextMentionTermination("TERMINATE", sources=["critic"]) | MaxMessageTermination(16),
    )
    result = await team.run(task=problem)
    await client.close()
    for message in result.messages:
        print(f"{message.source}: {message.to_text()}")
    said = [m.to_text() for m in result.messages if m.source == "solver"]
    print("FINAL:", stated(said[-1]) if said else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
