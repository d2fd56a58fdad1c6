"""Rates the labels of a campaign by rules: could the failure mode that is claimed occur at that agent and step at all?

    rater.py CAMPAIGN [--log LOG] [--most SHARE]      ends with 1 where more than SHARE of the labels fail

It prints a table mode x side, an example of each way to fail, and from the backend's log how often the rewriting model declined.

planted   errors that were drawn             misfit   of the rated, those whose mode cannot be there
rated     those that were delivered, and     labelled, fails   the same of the labels alone, which the share is of
          whose exchange the data set has

The rules are preconditions written from the definitions of MAST (Cemri et al., 2025, arXiv 2503.13657), and from nothing of Aegis but the
data set's documented form. They say that a label is impossible, never that it is right.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

ROLE = re.compile(r"\byou are\b|\byour role\b|\bact as\b", re.I)
# What an instruction says of an end, and how a reply concludes.
ENDS = re.compile(r"\b(?:ends the \w+|until|(?:stop|done|finished) (?:when|once|as soon as)|terminate\w*)\b", re.I)
CONCLUDES = re.compile(r"^(?:APPROVE|REVISE|Sum:|TOTAL:|ANSWER:)", re.M)
CLOSES = re.compile(r"^(?:APPROVE|REVISE|TOTAL:|ANSWER:)", re.M)
CHECKS = re.compile(r"\b(?:check|verif(?:y|ies)|validate|test|review|audit)s?\b", re.I)
CHECKED = re.compile(r"^(?:APPROVE|REVISE)|\b(?:compared|checked|verified|recomputed)\b", re.M)
# Modes that may lie in an action itself: a step done again, an action that is not what was reasoned.
OF_ACTIONS = ("FM-1.3", "FM-2.6")


class Exchange:
    """One labelled exchange: what stood in the clean run at this step, and what was altered there."""

    def __init__(self, row, steps, error, change):
        self.row, self.error, self.change, self.side = row, error, change, error["side"]
        at = error["step"]
        self.agent, step = error["agent"], steps[at]
        self.before, self.after = steps[:at], steps[at + 1 :]
        self.request, self.reply = asked(steps, at), step["output"]
        self.said = self.reply.get("text") or ""
        self.instructions = "\n".join(text(message) for message in self.request if message["role"] in ("system", "developer"))

    def own_earlier(self):
        """The agent sees something that it said or did before."""
        return any(message["role"] == "assistant" for message in self.request)

    def peer(self):
        """The agent sees words of another agent's earlier reply."""
        told = words("\n".join(text(message) for message in self.request))
        earlier = [step["output"].get("text") or "" for step in self.before if step["agent"] != self.agent]
        return any(len(said) > 10 and words(said) in told for said in earlier)

    def in_action(self):
        """The change lies in a tool call, a tool's result or code, and not in words."""
        before, after = self.change["before"], self.change["after"]
        changed = [message for message in after if message not in before]
        if any(message["role"] == "tool" for message in changed):
            return True
        prose = ["\n".join(re.sub(r"```.*?(?:```|\Z)", "", text(message), flags=re.S) for message in side) for side in (before, after)]
        return words(prose[0]) == words(prose[1])


def text(message):
    return message.get("text") or ""


def words(said):
    return " ".join(said.split())


def asked(steps, at):
    """The messages that were sent at a step, put together from the differences that a row stores."""
    told = steps[at]["input"]
    kept = asked(steps, told["follows"])[: told["kept"]] if "follows" in told else []
    return kept + told.get("messages", [])


def done_before(exchange):
    return None if exchange.own_earlier() or exchange.peer() else "nothing is done yet that could be done again"


def history(exchange):
    return None if exchange.own_earlier() or exchange.peer() else "there is no conversation yet that could be lost"


def role(exchange):
    return None if ROLE.search(exchange.instructions) else "the instructions give no role"


def end(exchange):
    told = ENDS.search(exchange.instructions) or CLOSES.search(exchange.said)
    return None if told else "neither do the instructions name an end, nor does the reply conclude"


def listener(exchange):
    others = any(step["agent"] != exchange.agent for step in exchange.after)
    return None if others else "no other agent speaks afterwards"


def input_of_others(exchange):
    return None if exchange.peer() else "no other agent's words are in the request"


def reasoning(exchange):
    acts = exchange.reply.get("calls") and exchange.said.strip()
    concluded = CONCLUDES.search(exchange.said)
    return None if acts or (concluded and exchange.said[: concluded.start()].strip()) else "no reasoning stands beside an action or a conclusion"


def work_left(exchange):
    return None if exchange.after else "no step is left that could be cut off"


def verifier(exchange):
    found = CHECKED.search(exchange.said) if exchange.side == "response" else CHECKS.search(exchange.instructions)
    return None if found else "the agent verifies nothing" if exchange.side == "response" else "nobody asks the agent to verify"


RULES = {
    "FM-1.2": role,
    "FM-1.3": done_before,
    "FM-1.4": history,
    "FM-1.5": end,
    "FM-2.1": history,
    "FM-2.4": listener,
    "FM-2.5": input_of_others,
    "FM-2.6": reasoning,
    "FM-3.1": work_left,
    "FM-3.2": verifier,
    "FM-3.3": verifier,
}


def why_not(mode, exchange):
    """Why the mode cannot be at this exchange; nothing where it can."""
    if mode not in OF_ACTIONS and exchange.in_action():
        return "what was altered is a tool call, a tool's result or code"
    return RULES[mode](exchange) if mode in RULES else None


def rows(campaign, file):
    path = campaign / file
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def exchanges(campaign):
    """Every delivered error of the data set with each mode that it is declared to be, and whether it is a label."""
    data, benign = rows(campaign, "dataset.jsonl"), rows(campaign, "benign.jsonl")
    clean = {row["id"]: row for row in data if row["kind"] == "clean"}
    for row in data + benign:
        label = row["label"]
        for error in (label["errors"] if label else []):
            # The twin has the unaltered exchange; a benign run whose task never failed has none, and shows the same but for the reply.
            steps = [dict(step) for step in clean.get(row["clean_twin"], row)["steps"]]
            change = next(one for one in label["changes"] if (one["step"], one["side"]) == (error["step"], error["side"]))
            if error["side"] == "response":
                steps[error["step"]]["output"] = change["before"][0]
            exchange = Exchange(row, steps, error, change)
            for mode in [error["failure_mode"], *error.get("other_modes", [])]:
                yield mode["code"], row["kind"] == "failure", exchange


def rate(campaign):
    """Counts by mode and side, and an example of each way to fail."""
    counts, examples = Counter(), {}
    report = json.loads((campaign / "report.json").read_text())
    for stratum in report["strata"]:
        if stratum["mode"]:
            counts[stratum["mode"], stratum["side"], "planted"] += stratum["planted"]
    for mode, labelled, exchange in exchanges(campaign):
        why = why_not(mode, exchange)
        for what, counted in (("rated", True), ("misfit", why), ("labelled", labelled), ("fails", labelled and why)):
            counts[mode, exchange.side, what] += bool(counted)
        if labelled and why:
            examples.setdefault((mode, exchange.side, why), exchange)
    return counts, examples


def table(counts):
    """The counts as lines, and the sums over all modes."""
    columns = ("planted", "rated", "misfit", "labelled", "fails")
    lines = [f"{'mode':8}{'side':10}" + "".join(f"{name:>10}" for name in columns) + f"{'share':>8}"]
    total = Counter()
    for mode, side in sorted({key[:2] for key in counts}):
        row = {name: counts[mode, side, name] for name in columns}
        total.update(row)
        lines.append(f"{mode:8}{side:10}" + "".join(f"{row[name]:10}" for name in columns) + share(row))
    lines.append(f"{'all':18}" + "".join(f"{total[name]:10}" for name in columns) + share(total))
    return lines, total


def share(row):
    return f"{row['fails'] / row['labelled']:8.1%}" if row["labelled"] else f"{'-':>8}"


def shown(key, exchange):
    """An example, in a few lines."""
    mode, side, why = key
    sides = [json.dumps([message.get("calls") or text(message) for message in exchange.change[when]]) for when in ("before", "after")]
    place = f"{exchange.row['id']} step {exchange.error['step']} {exchange.agent}"
    return [f"{mode} {side}: {why} ({place})", *(f"    {name} {said[-150:]}" for name, said in zip(("before", "after "), sides))]


def declined(log):
    """What the rewriting model was asked and how often it declined, by mode, as a line."""
    answers = [(call["mode"], call["answer"]) for call in map(json.loads, log.read_text().splitlines()) if call["part"] == "manipulator"]
    offered = sum("does_not_apply" in answer for _, answer in answers)
    by_mode = dict(Counter(mode for mode, answer in answers if answer.get("does_not_apply")))
    return f"asked {len(answers)} times, {offered} with `does_not_apply`: declined {sum(by_mode.values())} times {by_mode or ''}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--log", type=Path, help="what the backend wrote of its calls")
    parser.add_argument("--most", type=float, default=0.02, help="the share of the labels that may fail")
    options = parser.parse_args()
    counts, examples = rate(options.campaign)
    lines, total = table(counts)
    print("\n".join(lines))
    for key, exchange in sorted(examples.items(), key=lambda item: item[0]):
        print("\n".join(shown(key, exchange)))
    if options.log:
        print(declined(options.log))
    if not total["labelled"]:
        sys.exit("no label to rate")
    return 1 if total["fails"] > options.most * total["labelled"] else 0


if __name__ == "__main__":
    sys.exit(main())
