"""Pydantic AI on chat completions: a planner, two equal solvers with a calculator, and a reviewer with a typed verdict."""

import asyncio
import re
import sys

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"
SOLVE = "You solve word problems with the calculator. End with a line `ANSWER: <number>`."


class Verdict(BaseModel):
    """The reviewer's judgement."""

    verdict: str
    reason: str


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


async def main(problem: str) -> None:
    model = OpenAIChatModel("gpt-4o-mini")
    planner = Agent(model, instructions="You plan the work. Write short numbered steps, compute nothing.")
    solvers = [Agent(model, system_prompt=SOLVE, tools=[calculator]) for _ in range(2)]
    reviewer = Agent(model, instructions="You review the solutions of a word problem.", output_type=Verdict)
    plan = (await planner.run(problem)).output
    # The same words to two equal agents, one after the other: the wire cannot tell them from one that asks again.
    answers = [(await solver.run(f"{problem}\n\nPlan:\n{plan}")).output for solver in solvers]
    verdict = (await reviewer.run(f"{problem}\n\nFirst: {answers[0]}\n\nSecond: {answers[1]}")).output
    print(verdict.verdict)
    print("FINAL:", answers[-1].splitlines()[-1])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
