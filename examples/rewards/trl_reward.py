"""A reward function for TRL's GRPOTrainer: it is handed completions, and the column `ground_truth` by its name."""

import json
import sys

from aegis_reward import rewards


def attribution_reward(completions, ground_truth, **_):
    """Rewards a batch; a completion is a text, or a list of messages of which the last is the answer."""
    texts = [text if isinstance(text, str) else said(text[-1]) for text in completions]
    return rewards(texts, ground_truth)


def said(message):
    """The answer of a message: its text, or what it calls the tool with."""
    calls = message.get("tool_calls") or []
    return json.dumps(calls[-1]["function"]["arguments"]) if calls else message["content"]


if __name__ == "__main__":
    rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    answers = [row["ground_truth"] for row in rows]
    print(attribution_reward([[{"role": "assistant", "content": text}] for text in answers], answers))
