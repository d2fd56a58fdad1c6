"""Three equal runs of one agent of openai-agents at once."""

import asyncio

from agents import Agent, Runner, set_default_openai_api

set_default_openai_api("chat_completions")
solver = Agent(name="Solver", model="gpt-4o-mini", instructions="You solve word problems.")


async def main():
    runs = [Runner.run(solver, "A box holds 6 eggs. How many eggs do 7 boxes hold?") for _ in range(3)]
    print([run.final_output.split()[-1] for run in await asyncio.gather(*runs)])


asyncio.run(main())
