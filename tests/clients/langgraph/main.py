"""LangGraph: a supervisor hands over to a planner and a solver (streamed), then two reviewers vote in parallel."""

import operator
import re
import sys
from typing import Annotated, Literal, TypedDict

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph_supervisor import create_supervisor
from pydantic import BaseModel

PROBLEM = "A school buys 8 packs with 24 notebooks each. 50 notebooks are handed out. How many notebooks remain?"

model = ChatOpenAI(model="gpt-4o-mini", temperature=0)


@tool
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


class Verdict(BaseModel):
    """A reviewer's vote on a solution."""

    verdict: Literal["correct", "incorrect"]
    reason: str


class State(TypedDict):
    """What the outer graph carries."""

    problem: str
    solution: str
    votes: Annotated[list[tuple[str, Verdict]], operator.add]


planner = create_agent(
    model,
    tools=[],
    system_prompt="You plan. Break the word problem into short numbered steps. Do not compute anything.",
    name="planner",
)
solver = create_agent(
    model,
    tools=[calculator],
    system_prompt="You solve. Follow the plan, compute with the calculator, and end with a line `ANSWER: <answer>`.",
    name="solver",
)
team = create_supervisor(
    [planner, solver],
    model=model,
    prompt="You supervise a planner and a solver. First hand the problem over to the planner, then to the solver. "
    "When the solver has answered, repeat its line `ANSWER: <answer>`.",
).compile(name="team")


def work(state: State) -> dict:
    """Let the team solve the problem, its tokens streamed."""
    solution = ""
    for kind, data in team.stream({"messages": [("user", state["problem"])]}, stream_mode=["messages", "values"]):
        if kind == "values":
            solution = data["messages"][-1].text
    return {"solution": solution}


def review(role: str, prompt: str):
    """Make the node of one reviewer."""
    judge = model.with_structured_output(Verdict)

    def node(state: State) -> dict:
        question = f"Problem: {state['problem']}\nSolution: {state['solution']}"
        vote = judge.invoke([("system", prompt), ("user", question)])
        return {"votes": [(role, vote)]}

    return node


graph = StateGraph(State)
graph.add_node("team", work)
graph.add_node("arithmetic_reviewer", review("arithmetic_reviewer", "You check the arithmetic of a solution."))
graph.add_node("units_reviewer", review("units_reviewer", "You check the units of a solution."))
graph.add_edge(START, "team")
graph.add_edge("team", "arithmetic_reviewer")
graph.add_edge("team", "units_reviewer")
graph.add_edge("arithmetic_reviewer", END)
graph.add_edge("units_reviewer", END)


def stated(text):
    """The answer that a text states: its last block of code, else what follows its last `ANSWER:`."""
    blocks = re.findall(r"```\w*\n.*?(?:```|\Z)", text, re.S)
    lines = re.findall(r"ANSWER:[ *]*(.+)", text)
    return blocks[-1].strip() if blocks else lines[-1].strip() if lines else "none"


def main(problem: str) -> None:
    state = graph.compile().invoke({"problem": problem, "solution": "", "votes": []})
    print("solution:", state["solution"])
    for role, vote in state["votes"]:
        print(f"{role}: {vote.verdict} ({vote.reason})")
    print("FINAL:", stated(state["solution"]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
