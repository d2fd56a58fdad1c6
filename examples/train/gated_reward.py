"""AgenTracer's reward for verl: nothing without the form, else half for the agent and half for how near the step is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "rewards"))

from aegis_reward import rewards  # noqa: E402  verl loads this file by its path


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """The reward of one solution."""
    return rewards([solution_str], [ground_truth], "agentracer")[0]
