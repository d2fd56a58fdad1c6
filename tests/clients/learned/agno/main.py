"""Agno: a team whose leader delegates to its members; role `developer`, the time of day in every prompt."""

import sys

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


def member(name: str, role: str, instructions: str) -> Agent:
    return Agent(
        name=name,
        role=role,
        model=OpenAIChat(id="gpt-4o-mini"),
        instructions=instructions,
        add_datetime_to_context=True,
        telemetry=False,
    )


def main(problem: str) -> None:
    team = Team(
        name="desk",
        model=OpenAIChat(id="gpt-4o-mini"),
        members=[
            member("planner", "Makes a plan", "You plan the work in short numbered steps."),
            member("solver", "Computes the result", "You solve word problems. End with a line `ANSWER: <number>`."),
        ],
        instructions="You supervise the team. Delegate to the planner, then to the solver, then repeat the answer.",
        telemetry=False,
    )
    print("FINAL:", str(team.run(problem).content))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
