"""Reinforcement learning of a tracer with TRL's GRPO: the reward is Aegis' own, KL 0, eight rollouts, learning rate 1e-6.

    python3 grpo_trl.py DATASET --out FOLDER [--model NAME] [--steps N] [--reward step]

Both parts of the reward are logged apart (`rewards/readable/mean`, `rewards/attribution/mean`). A model that never writes an
answer that can be read learns nothing from this: begin with what `sft_trl.py` left (`--model FOLDER/model`). The rewards come
from a process a batch, or from a running `aegis reward` (`AEGIS_REWARD_URL`).
"""

import json
import sys

import recipe

sys.path.insert(0, str(recipe.HERE.parent / "rewards"))

parser = recipe.options(__doc__.splitlines()[0], steps=20)
parser.add_argument("--reward", default="step", help="step, which pays for agent, step and mode; aegis, aegis-strict or agentracer")
parser.add_argument("--rollouts", type=int, default=8, help="answers to each prompt")
parser.add_argument("--tokens", type=int, default=192, help="of an answer at most; one that names eight agents has 182")
options = parser.parse_args()


def text(completion):
    """A completion's text: the last message of a conversation."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def readable(completions, **_):
    """A tenth for an answer in the form that was asked for."""
    return [0.1 if is_answer(text(completion)) else 0.0 for completion in completions]


def is_answer(said):
    """Whether a text is one JSON object with a list of culprits."""
    try:
        return isinstance(json.loads(said)["faulty_agents"], list)
    except (ValueError, KeyError, TypeError):
        return False


def attribution(completions, ground_truth, **_):
    """Aegis' reward."""
    from aegis_reward import rewards

    return rewards([text(completion) for completion in completions], ground_truth, options.reward)


def main():
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    files = recipe.parts(options)
    model, words = recipe.tracer(options.model)
    before = recipe.measure("before", files, options, lambda file: recipe.ranked(model, words, file, options))
    rows = recipe.prompts(files["known"], options, "grpo")
    args = recipe.settings(
        GRPOConfig, options, learning_rate=1e-6, beta=0.0, num_generations=options.rollouts, temperature=1.0,
        max_completion_length=options.tokens, per_device_train_batch_size=options.rollouts, gradient_accumulation_steps=1,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model, [readable, attribution], args=args, train_dataset=Dataset.from_list(rows), processing_class=words,
        peft_config=recipe.adapter(),
    )  # fmt: skip
    seconds = recipe.trained(trainer, options)
    learnt = trainer.model.eval()
    after = recipe.measure("after", files, options, lambda file: recipe.ranked(learnt, words, file, options))
    recipe.table(before, after, files, options, seconds)


if __name__ == "__main__":
    main()
