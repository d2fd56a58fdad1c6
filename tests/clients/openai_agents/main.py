"""OpenAI Agents on chat completions: a triage agent hands off to a solver (streamed); a verifier judges the answer."""

import asyncio
import re
import sys
from dataclasses import dataclass
from typing import Literal

from agents import Agent, Runner, function_tool, set_default_openai_api

set_default_openai_api("chat_completions")

PROBLEM = "A library has 11 shelves with 32 books each. 27 books are lent out. How many books are in the library now?"


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
    model="gpt-4o-mini",
    handoff_description="Solves arithmetic word problems.",
    instructions="You solve word problems. Compute with the calculator and end with a line `ANSWER: <answer>`.",
    tools=[calculator],
)
poet = Agent(
    name="Poet",
    model="gpt-4o-mini",
    handoff_description="Writes short poems.",
    instructions="You write short poems.",
)
triage = Agent(
    name="Triage",
    model="gpt-4o-mini",
    instructions="You are a triage agent. Hand the user's request off to the agent that fits it.",
    handoffs=[solver, poet],
)
verifier = Agent(
    name="Verifier",
    model="gpt-4o-mini",
    instructions="You verify the solution of a word problem.",
    output_type=Verdict,
)


def stated(text):
    """The answer that a text states: its last block of code, else what follows its last `ANSWER:`."""
    blocks = re.findall(r"```\w*\n.*?(?:```|\Z)", text, re.S)
    lines = re.findall(r"ANSWER:[ *]*(.+)", text)
    return blocks[-1].strip() if blocks else lines[-1].strip() if lines else "none"


async def main(problem: str) -> None:
    run = Runner.run_streamed(triage, problem)
    async for event in run.stream_events():
        if event.type == "agent_updated_stream_event":
            print("now:", event.new_agent.name)
    answer = str(run.final_output)
    print(f"{run.last_agent.name}: {answer}")
    judged = await Runner.run(verifier, f"Problem: {problem}\nSolution: {answer}")
    print("Verifier:", judged.final_output.verdict, judged.final_output.feedback)
    print("FINAL:", stated(answer))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
