"""smolagents: a planner and a solver told apart by their instructions, and two checkers that nothing tells apart."""

import sys

from smolagents import OpenAIServerModel, ToolCallingAgent

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


def main(problem: str) -> None:
    model = OpenAIServerModel(model_id="gpt-4o-mini", api_key="none")

    def agent(instructions: str | None) -> ToolCallingAgent:
        return ToolCallingAgent([], model, instructions=instructions, max_steps=2, verbosity_level=0)

    plan = agent("You plan the work and compute nothing.").run(problem)
    answer = agent("You solve word problems.").run(f"{problem}\n\nPlan: {plan}")
    # The library's own prompt, no instructions, the same words: the wire cannot tell the second from the first.
    checked = [agent(None).run(f"Check this: {problem}\n{answer}") for _ in range(2)]
    print("FINAL:", checked[-1])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
