"""OpenAI Agents on the Responses API, its default: a triage agent hands off to a solver, streamed; a verifier judges."""

import asyncio
import re
import sys
from dataclasses import dataclass
from typing import Literal

from agents import Agent, Runner, function_tool

PROBLEM = "A museum opens 15 halls with 22 paintings each. 48 paintings are lent out. How many paintings remain?"
MODEL = "gpt-5-mini"


@function_tool
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


@dataclass
class Verdict:
    """The verifier's judgement."""

    verdict: Literal["correct", "incorrect"]
    feedback: str


solver = Agent(
    name="Solver",
    model=MODEL,
    handoff_description="Solves arithmetic word problems.",
    instructions="You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
    tools=[calculator],
)
triage = Agent(
    name="Triage",
    model=MODEL,
    instructions="You are a triage agent. Hand the user's request off to the agent that fits it.",
    handoffs=[solver],
)
verifier = Agent(
    name="Verifier",
    model=MODEL,
    instructions="You verify the solution of a word problem.",
    output_type=Verdict,
)


async def main(problem: str) -> None:
    run = Runner.run_streamed(triage, problem)
    async for event in run.stream_events():
        if event.type == "agent_updated_stream_event":
            print("now:", event.new_agent.name)
    answer = str(run.final_output)
    print(f"{run.last_agent.name}: {answer}")
    judged = await Runner.run(verifier, f"Problem: {problem}\nSolution: {answer}")
    print("Verifier:", judged.final_output.verdict, judged.final_output.feedback)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))
    print("FINAL:", numbers[-1] if numbers else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
