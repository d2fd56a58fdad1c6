"""Microsoft Agent Framework on the Responses API: a solver with a tool, streamed, then a reviewer that fills a form."""

import asyncio
import re
import sys
from typing import Annotated, Literal

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient
from pydantic import BaseModel

PROBLEM = "A farm fills 16 crates with 35 apples each. It gives away 88 apples. How many apples does the farm have left?"


class Verdict(BaseModel):
    """The reviewer's judgement of a solution."""

    verdict: Literal["correct", "incorrect"]
    reason: str


def calculator(expression: Annotated[str, "An arithmetic expression such as 3 * (4 + 5)"]) -> str:
    """Evaluate an arithmetic expression."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


client = OpenAIChatClient(model="gpt-5-mini")
solver = Agent(
    client,
    name="solver",
    instructions="You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
    tools=[calculator],
)
reviewer = Agent(client, name="reviewer", instructions="You verify the solution of a word problem.")


async def main(problem: str) -> None:
    stream = solver.run(problem, stream=True)
    updates = [update async for update in stream]
    answer = (await stream.get_final_response()).text
    print(f"solver: {answer} ({'streamed' if len(updates) > 3 else 'whole'})")
    question = f"Problem: {problem}\nSolution: {answer}"
    judged = await reviewer.run(question, options={"response_format": Verdict})
    print("reviewer:", judged.value.verdict, judged.value.reason)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))
    print("FINAL:", numbers[-1] if numbers else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
