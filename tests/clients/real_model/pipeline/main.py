"""A pipeline with a critic on LangGraph: a solver drafts, a critic judges by a schema, a draft that it rejects is made anew, a
writer gives the final answer."""

import sys
from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from openai import LengthFinishReasonError
from pydantic import BaseModel, ValidationError

MODEL = "smollm2-135m-instruct"


class Verdict(BaseModel):
    """What the critic says of a draft."""

    reason: str
    verdict: Literal["correct", "incorrect"]


class State(TypedDict):
    """What the graph carries."""

    question: str
    draft: str
    verdict: str
    final: str


def graph(temperature):
    """Build the graph of three agents."""
    model = ChatOpenAI(model=MODEL, temperature=temperature, api_key="none", max_tokens=64, timeout=600)

    def solve(state):
        prompt = "You are the solver. Answer the question in one short sentence."
        return {"draft": model.invoke([("system", prompt), ("user", state["question"])]).text}

    def criticise(state):
        prompt = "You are the critic. Say whether the answer to the question is correct."
        text = f"Question: {state['question']}\nAnswer: {state['draft']}"
        judge = model.with_structured_output(Verdict, method="json_schema")
        try:
            return {"verdict": judge.invoke([("system", prompt), ("user", text)]).verdict}
        except (LengthFinishReasonError, ValidationError):
            # A small model talks on until it is cut, and half of a verdict is none.
            return {"verdict": "incorrect"}

    def revise(state):
        prompt = "You are the solver. Your answer was wrong. Give another answer in one short sentence."
        text = f"{state['question']}\nYour answer was: {state['draft']}"
        return {"draft": model.invoke([("system", prompt), ("user", text)]).text}

    def write(state):
        prompt = "You are the writer. Repeat the answer word for word."
        return {"final": model.invoke([("system", prompt), ("user", f"Answer: {state['draft']}")]).text}

    built = StateGraph(State)
    for name, node in [("solver", solve), ("critic", criticise), ("reviser", revise), ("writer", write)]:
        built.add_node(name, node)
    for one, other in [(START, "solver"), ("solver", "critic"), ("reviser", "writer"), ("writer", END)]:
        built.add_edge(one, other)
    built.add_conditional_edges("critic", lambda state: "writer" if state["verdict"] == "correct" else "reviser")
    return built.compile()


def main(question, temperature):
    state = graph(temperature).invoke({"question": question})
    print("solver:", state["draft"])
    print("critic:", state["verdict"])
    print("FINAL:", " ".join(state["final"].split()))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
