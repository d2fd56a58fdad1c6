"""AG2 1.x: a lead asks a planner, which asks an accountant; each is offered to the one above it as a tool."""

import asyncio
import sys

from ag2 import Agent
from ag2.config import OpenAIConfig

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


async def main(problem: str) -> None:
    config = OpenAIConfig(model="gpt-4o-mini")
    accountant = Agent("accountant", "You compute the result. End with a line `ANSWER: <number>`.", config=config)
    planner = Agent(
        "planner",
        "You coordinate the work. Have it computed by task_accountant.",
        config=config,
        tools=[accountant.as_tool(description="Computes a result")],
    )
    lead = Agent(
        "lead",
        "You supervise. Ask task_planner, then repeat its answer.",
        config=config,
        tools=[planner.as_tool(description="Has the work done")],
    )
    reply = await lead.ask(problem)
    print("FINAL:", reply.body)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
