"""Experts who are recruited for the task: they discuss, one executes, one evaluates; what falls through goes round again.

After Chen et al., "AgentVerse: Facilitating Multi-Agent Collaboration and Exploring Emergent Behaviors" (2023): expert
recruitment, collaborative decision making, action execution, evaluation, and its feedback to the recruiter. Standard library alone.
"""

import json
import os
import re
import sys
import urllib.request

PROBLEM = "A library has 8 shelves with 25 books each. 30 books are lent out. How many books are left?"
EXPERTS = 3
ROUNDS = 2
# Who comes where the recruiter names nobody.
USUAL = ["a mathematician who computes carefully", "an engineer who works step by step", "a teacher who explains each step"]
# A small model is named, and asked in fewer words, by the environment.
MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
FORM = os.environ.get(
    "ANSWER_FORM",
    "Explain your reasoning and end with a line `ANSWER: <answer>`. "
    "Where code is asked for, one fenced block of code takes the place of that line.",
)
RECRUITER = "You are the recruiter of a team. Name three experts for the task, one a line. Do not work on the task."
SOLVER = "You are the solver of a team of experts. You decide what the team answers."
EXECUTOR = "You are the executor, who reports what the team decided. You compute nothing."
EVALUATOR = "You are the evaluator. If the result is right, say ACCEPTED; else say REJECTED and what is wrong."


def ask(messages):
    """One model call; gives the reply's text."""
    body = json.dumps({"model": MODEL, "temperature": 0, "messages": messages}).encode()
    key = os.environ.get("OPENAI_API_KEY", "none")
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions",
        data=body,
        headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)["choices"][0]["message"]["content"] or ""


def stated(text):
    """The answer that a text states: its last block of code, else what follows its last `ANSWER:`."""
    blocks = re.findall(r"```\w*\n.*?(?:```|\Z)", text, re.S)
    lines = re.findall(r"ANSWER:[ *]*(.+)", text)
    return blocks[-1].strip() if blocks else lines[-1].strip() if lines else "none"


def message(role, content):
    return {"role": role, "content": content}


class Agent:
    """One who remembers what was said."""

    def __init__(self, name, prompt):
        self.name, self.history = name, [message("system", prompt)]

    def say(self, told):
        self.history.append(message("user", told))
        said = ask(self.history)
        self.history.append(message("assistant", said))
        print(f"{self.name}: {said}")
        return said


def recruited(recruiter, told):
    """The experts that the recruiter names, as agents."""
    named = re.findall(r"^\s*\d+[.)]\s*(.+?)\s*$", recruiter.say(told), re.M)
    experts = (named + USUAL)[:EXPERTS]
    return [Agent(f"Expert{n}", f"You are Expert{n}, {words}.") for n, words in enumerate(experts, 1)]


def decided(solver, experts, problem, feedback):
    """The solver proposes, the experts say what they think, the solver decides."""
    asked = f"{problem}\n\n{FORM}" if not feedback else f"The evaluator said:\n{feedback}\n\nPropose anew. {FORM}"
    proposal = solver.say(asked)
    told = f"{problem}\n\nThe solver proposes:\n{proposal}\n\nWhat is your answer? {FORM}"
    views = "\n\n".join(f"Agent {expert.name}:\n{expert.say(told)}" for expert in experts)
    return solver.say(f"The other agents answered:\n\n{views}\n\nDecide. {FORM}")


def main(problem):
    recruiter, solver = Agent("recruiter", RECRUITER), Agent("solver", SOLVER)
    executor, evaluator = Agent("executor", EXECUTOR), Agent("evaluator", EVALUATOR)
    feedback, result = "", ""
    for number in range(1, ROUNDS + 1):
        told = f"The task: {problem}" if not feedback else f"The result fell through:\n{feedback}\n\nRecruit anew."
        experts = recruited(recruiter, told)
        decision = decided(solver, experts, problem, feedback)
        result = executor.say(f"The team decided:\n{decision}\n\nState the result. {FORM}")
        verdict = evaluator.say(f"Task: {problem}\n\nAgent executor:\n{result}")
        if "REJECTED" not in verdict:
            break
        feedback = verdict
        print(f"team: round {number} fell through")
    print("FINAL:", stated(result))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
