"""CrewAI, sequential process: a planner plans, a solver computes with a tool, a reporter fills a form."""

import re
import sys

from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import tool
from pydantic import BaseModel

PROBLEM = "A baker fills 9 trays with 15 rolls each. He sells 40 rolls. How many rolls are left?"


@tool("calculator")
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


class Report(BaseModel):
    """What the reporter hands over."""

    answer: str
    explanation: str


def main(problem: str) -> None:
    llm = LLM(model="openai/gpt-4o-mini", temperature=0)
    planner = Agent(
        role="Planner",
        goal="Turn a word problem into a short numbered plan",
        backstory="You plan carefully and never compute.",
        llm=llm,
        allow_delegation=False,
    )
    solver = Agent(
        role="Solver",
        goal="Compute the answer of a word problem",
        backstory="You solve word problems step by step with a calculator.",
        tools=[calculator],
        llm=llm,
        allow_delegation=False,
    )
    reporter = Agent(
        role="Reporter",
        goal="Report the answer that the solver found",
        backstory="You fill in forms and never compute.",
        llm=llm,
        allow_delegation=False,
    )
    plan = Task(
        description=f"Write a plan for this problem: {problem}",
        expected_output="A short numbered plan",
        agent=planner,
    )
    solve = Task(
        description=f"Follow the plan and solve this problem: {problem}",
        expected_output="The computation, then a last line `ANSWER: <answer>`",
        agent=solver,
        context=[plan],
    )
    report = Task(
        description=f"Report the answer of the solution to this problem: {problem}",
        expected_output="The answer alone (a number, a letter or a block of code), and one sentence of explanation",
        agent=reporter,
        context=[solve],
        output_pydantic=Report,
    )
    crew = Crew(agents=[planner, solver, reporter], tasks=[plan, solve, report], process=Process.sequential)
    result = crew.kickoff()
    for output in result.tasks_output:
        print(f"{output.agent}: {output.raw}")
    print("FINAL:", result.pydantic.answer)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
