"""Two agents and a tool under Inspect AI, on two samples: one is scored right, one wrong. Prints the log's path.

    evaluate.py FOLDER
"""

import os
import sys

from backend import serve

os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = serve(), "none"

from inspect_ai import Task, eval
from inspect_ai.agent import AgentState, agent, run
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import solver
from inspect_ai.tool import tool


@tool
def add():
    async def execute(a: int, b: int):
        """Adds.

        Args:
            a: one number
            b: the other
        """
        return str(a + b)

    return execute


@agent
def planner():
    async def execute(state: AgentState):
        """Plans."""
        state.output = await get_model().generate(state.messages)
        state.messages.append(state.output.message)
        return state

    return execute


@agent
def calculator():
    async def execute(state: AgentState):
        """Calculates."""
        said, state.output = await get_model().generate_loop(state.messages, tools=[add()])
        state.messages.extend(said)
        return state

    return execute


@solver
def both():
    async def solve(state, generate):
        planned = await run(planner(), state.messages)
        done = await run(calculator(), planned.messages)
        state.messages, state.output = done.messages, done.output
        return state

    return solve


SAMPLES = [
    Sample(id="right", input="What is 12 + 30?", target="42"),
    # Long enough to become an attachment of the log.
    Sample(id="wrong", input="What is 1 + 1? " * 20, target="two"),
]
logs = eval(Task(dataset=SAMPLES, solver=both(), scorer=includes()), model="openai/gpt-x", log_dir=sys.argv[1], log_format="json", display="none")
print(logs[0].location)
