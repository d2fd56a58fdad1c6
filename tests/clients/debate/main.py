"""Debate with an aggregator: three debaters answer, read each other, answer again; an aggregator states the outcome.

The method of Du et al., "Improving Factuality and Reasoning in Language Models through Multiagent Debate" (2023), with
the aggregator that later comparisons of the method add. Standard library alone.
"""

import json
import os
import re
import sys
import urllib.request

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"
DEBATERS = ("Ada", "Blaise", "Carl")
ROUNDS = 2
FORM = (
    "Explain your reasoning and end with a line `ANSWER: <answer>`. "
    "Where code is asked for, one fenced block of code takes the place of that line."
)


def ask(messages):
    """One model call; gives the reply's text."""
    body = json.dumps({"model": "gpt-4o-mini", "temperature": 0, "messages": messages}).encode()
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


def main(problem):
    histories = {
        name: [message("system", f"You are {name}, a debater who solves tasks."), message("user", f"{problem}\n\n{FORM}")]
        for name in DEBATERS
    }
    said = {name: "" for name in DEBATERS}
    for number in range(ROUNDS):
        before = dict(said)
        for name, history in histories.items():
            if number:
                others = "\n\n".join(f"Debater {other}:\n{before[other]}" for other in DEBATERS if other != name)
                advice = "Use these answers as advice and give your updated answer in the same form."
                history.append(message("user", f"The other debaters answered:\n\n{others}\n\n{advice}"))
            said[name] = ask(history)
            history.append(message("assistant", said[name]))
            print(f"{name}, round {number + 1}: {said[name]}")
    answers = "\n\n".join(f"Debater {name}:\n{text}" for name, text in said.items())
    outcome = ask(
        [
            message("system", f"You are the aggregator of a debate. State the answer that most debaters gave. {FORM}"),
            message("user", f"Task: {problem}\n\nThe debaters' final answers:\n\n{answers}"),
        ]
    )
    print(f"aggregator: {outcome}")
    print("FINAL:", stated(outcome))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
