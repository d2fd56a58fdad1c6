"""LlamaIndex: an agent workflow in which a planner, a solver and a reviewer hand one shared history on (streamed)."""

import asyncio
import re
import sys

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


async def main(problem: str) -> None:
    model = OpenAI(model="gpt-4o-mini")
    planner = FunctionAgent(
        name="planner",
        description="Makes a plan.",
        system_prompt="You plan the work in numbered steps, then hand off to the solver.",
        llm=model,
        can_handoff_to=["solver"],
    )
    solver = FunctionAgent(
        name="solver",
        description="Computes the result.",
        system_prompt="You solve word problems with the calculator, then hand off to the reviewer.",
        llm=model,
        tools=[calculator],
        can_handoff_to=["reviewer"],
    )
    reviewer = FunctionAgent(
        name="reviewer",
        description="Checks the result.",
        system_prompt="You review the solution. If it is right, repeat the line `ANSWER: <number>`.",
        llm=model,
        can_handoff_to=[],
    )
    workflow = AgentWorkflow(agents=[planner, solver, reviewer], root_agent="planner")
    print("FINAL:", str(await workflow.run(user_msg=problem)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
