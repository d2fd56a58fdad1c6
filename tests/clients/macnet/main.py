"""A network of agents without cycles: each node refines what it is handed, each edge has a critic who instructs it.

After Qian et al., "Scaling Large Language Model-based Multi-Agent Collaboration" (2024): nodes act, edges criticise, the
order is topological, a node hands on its answer alone, and one that several edges reach brings their answers together.
Standard library alone.
"""

import json
import os
import re
import sys
import urllib.request

PROBLEM = "A baker fills 9 trays with 15 rolls each. He sells 40 rolls. How many rolls are left?"
# From one source by three branches to one sink.
EDGES = (("N1", "N2"), ("N1", "N3"), ("N1", "N4"), ("N2", "N5"), ("N3", "N5"), ("N4", "N5"))
# A small model is named, and asked in fewer words, by the environment.
MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
FORM = os.environ.get(
    "ANSWER_FORM",
    "Explain your reasoning and end with a line `ANSWER: <answer>`. "
    "Where code is asked for, one fenced block of code takes the place of that line.",
)
ACTOR = "You are actor {node} of a network of agents. You solve tasks, and refine the answer that you are handed."
SINK = "You are actor {node}, the aggregator of a network of agents. State the answer that most actors gave."
CRITIC = (
    "You are the critic on the edge from {one} to {other} of a network of agents. "
    "If the answer is right, say APPROVE; else say REVISE and what is wrong."
)


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


def order(edges):
    """The nodes so that each comes after all that reach it."""
    nodes, left = [], {node for edge in edges for node in edge}
    while left:
        ready = sorted(node for node in left if all(one in nodes for one, other in edges if other == node))
        nodes += ready
        left -= set(ready)
    return nodes


def instructed(problem, one, other, answer):
    """What the critic of an edge says of the answer that comes along it."""
    said = ask(
        [
            message("system", CRITIC.format(one=one, other=other)),
            message("user", f"Task: {problem}\n\nActor {one}:\n{answer}"),
        ]
    )
    print(f"critic {one}-{other}: {said}")
    return said


def act(problem, node, handed):
    """A node's answer: its own, the one that it was handed and told how to refine, or what several come to."""
    if not handed:
        return ask([message("system", ACTOR.format(node=node)), message("user", f"{problem}\n\n{FORM}")])
    if len(handed) == 1:
        [(_, answer, advice)] = handed
        return ask(
            [
                message("system", ACTOR.format(node=node)),
                message("user", f"{problem}\n\n{FORM}"),
                message("assistant", answer),
                message("user", f"The critic says:\n{advice}\n\nRefine the answer. {FORM}"),
            ]
        )
    answers = "\n\n".join(f"Actor {one}:\n{answer}\nIts critic says: {advice}" for one, answer, advice in handed)
    return ask(
        [
            message("system", f"{SINK.format(node=node)} {FORM}"),
            message("user", f"Task: {problem}\n\nThe actors' answers:\n\n{answers}"),
        ]
    )


def main(problem):
    answers = {}
    for node in order(EDGES):
        before = [one for one, other in EDGES if other == node]
        handed = [(one, answers[one], instructed(problem, one, node, answers[one])) for one in before]
        answers[node] = act(problem, node, handed)
        print(f"{node}: {answers[node]}")
    print("FINAL:", stated(answers[order(EDGES)[-1]]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
