"""Pydantic AI on the Responses API: a solver with a tool, its answer streamed, then a reviewer that fills a form."""

import asyncio
import re
import sys
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput

PROBLEM = "A bakery bakes 14 trays with 24 rolls each. It sells 96 rolls. How many rolls does the bakery have left?"
MODEL = "openai-responses:gpt-5-mini"


class Verdict(BaseModel):
    """The reviewer's judgement of a solution."""

    verdict: Literal["correct", "incorrect"]
    reason: str


solver = Agent(
    MODEL,
    name="solver",
    instructions="You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
)
reviewer = Agent(
    MODEL,
    name="reviewer",
    instructions="You verify the solution of a word problem.",
    output_type=NativeOutput(Verdict),
)


@solver.tool_plain
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


async def main(problem: str) -> None:
    async with solver.run_stream(problem) as stream:
        answer = await stream.get_output()
    print("solver:", answer)
    judged = await reviewer.run(f"Problem: {problem}\nSolution: {answer}")
    print("reviewer:", judged.output.verdict, judged.output.reason)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))
    print("FINAL:", numbers[-1] if numbers else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
