"""Supervised fine-tuning of a tracer with TRL and LoRA: which agent erred, at which step.

    python3 sft_trl.py DATASET --out FOLDER [--model NAME] [--steps N]

On a CPU as it stands (SmolLM2-135M); with `--model Qwen/Qwen3-1.7B --batch 16` on a GPU. Started again, it goes on. What it
leaves in `FOLDER/model` is a model like any other: `grpo_trl.py --model FOLDER/model` begins with it.
"""

import recipe

options = recipe.options(__doc__.splitlines()[0], steps=40).parse_args()


def rows(file):
    """Failures, and a clean run for four of them: what is measured is who erred, not whether anybody did."""
    from datasets import Dataset

    all_rows = [row["messages"] for row in recipe.prompts(file, options)]
    blamed = [row for row in all_rows if '"faulty_agents":[{' in row[-1]["content"]]
    clean = [row for row in all_rows if row not in blamed][: len(blamed) // 4]
    return Dataset.from_list([{"prompt": row[:-1], "completion": row[-1:]} for row in blamed + clean])


def main():
    from trl import SFTConfig, SFTTrainer

    files = recipe.parts(options)
    model, words = recipe.tracer(options.model)
    before = recipe.measure("before", files, options, lambda file: recipe.ranked(model, words, file, options))
    args = recipe.settings(SFTConfig, options, learning_rate=2e-4, max_length=None, warmup_steps=5)
    trainer = SFTTrainer(model, args, train_dataset=rows(files["known"]), processing_class=words, peft_config=recipe.adapter())
    seconds = recipe.trained(trainer, options)
    learnt = recipe.left(trainer, words, options)
    after = recipe.measure("after", files, options, lambda file: recipe.ranked(learnt, words, file, options))
    recipe.table(before, after, files, options, seconds)


if __name__ == "__main__":
    main()
