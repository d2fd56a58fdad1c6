"""A reward function for verl: `custom_reward_function.path=…/verl_reward.py`, name `compute_score`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from aegis_reward import rewards  # noqa: E402  verl loads this file by its path


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """The reward of one solution."""
    return rewards([solution_str], [ground_truth])[0]


if __name__ == "__main__":
    for line in open(sys.argv[1], encoding="utf-8"):
        row = json.loads(line)
        truth = row["reward_model"]["ground_truth"]
        print(compute_score(row["data_source"], truth, truth, row["extra_info"]))
