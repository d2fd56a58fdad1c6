"""A dynamic network of agents that vote: all answer, rate their peers' answers, the lowest rated leaves, most decide.

After Liu et al., "Dynamic LLM-Agent Network" (2023): layers of agents with roles, ratings between neighbouring layers,
a team that shrinks by them, an early end where most agree. Standard library alone.
"""

import json
import os
import re
import sys
import urllib.request
from collections import Counter

PROBLEM = "A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?"
ROLES = {
    "Mathematician": "a mathematician who computes carefully",
    "Engineer": "an engineer who works step by step",
    "Teacher": "a teacher who explains each step",
    "Analyst": "an analyst who looks for what is given and what is asked",
}
ROUNDS = 3
FORM = (
    "Explain your reasoning and end with a line `ANSWER: <answer>`. "
    "Where code is asked for, one fenced block of code takes the place of that line."
)
RATE = "Before it, write a line `RATINGS:` with a whole number from 1 to 5 for each peer, in their order."


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


def ratings(text, count):
    """The ratings that a text gives its peers; 3 for each where it gives none that can be read."""
    line = re.findall(r"RATINGS:(.*)", text)
    given = [int(number) for number in re.findall(r"\d+", line[-1])] if line else []
    return [min(max(number, 1), 5) for number in given] if len(given) == count else [3] * count


def message(role, content):
    return {"role": role, "content": content}


def first_round(problem):
    histories = {
        role: [message("system", f"You are {words}."), message("user", f"{problem}\n\n{FORM}")]
        for role, words in ROLES.items()
    }
    return histories, speak(histories, 1)


def speak(histories, number):
    """Every agent of the team speaks; gives what they said."""
    said = {}
    for role, history in histories.items():
        said[role] = ask(history)
        history.append(message("assistant", said[role]))
        print(f"{role}, round {number}: {said[role]}")
    return said


def further_round(histories, said, number):
    """Every agent reads its peers, rates them and answers anew; gives what they said and each one's rating."""
    for role, history in histories.items():
        peers = "\n\n".join(f"Peer {peer}:\n{text}" for peer, text in said.items() if peer != role)
        task = f"Your peers answered:\n\n{peers}\n\nGive your updated answer. {FORM} {RATE}"
        history.append(message("user", task))
    then = speak(histories, number)
    score = Counter({role: 0 for role in histories})
    for role, text in then.items():
        peers = [peer for peer in said if peer != role]
        score.update(dict(zip(peers, ratings(text, len(peers)))))
    return then, score


def main(problem):
    histories, said = first_round(problem)
    for number in range(2, ROUNDS + 1):
        said, score = further_round(histories, said, number)
        answers = Counter(map(stated, said.values()))
        if answers.most_common(1)[0][1] == len(said) or number == ROUNDS:
            break
        # The one that was rated lowest leaves; of equals the last of the team.
        lowest = min(reversed(list(histories)), key=lambda role: score[role])
        print(f"team: {lowest} leaves with {score[lowest]} points")
        del histories[lowest], said[lowest]
    winner, votes = Counter(map(stated, said.values())).most_common(1)[0]
    print(f"team: {votes} of {len(said)} votes")
    print("FINAL:", winner)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM)
