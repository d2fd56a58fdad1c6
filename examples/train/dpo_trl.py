"""Preference pairs with TRL's DPO: the clean reply is preferred to the failed one, at the step where the twins part.

    python3 dpo_trl.py DATASET --out FOLDER [--model NAME] [--steps N]

This trains the *agent* that erred, not a tracer: it is asked what the agent was asked, and learns to answer as in the
clean run. What is measured: how often the model finds the clean reply likelier than the failed one, on what it was not
trained on. Where a reply was altered by rule, this is mostly telling a number that does not follow from one that does.
"""

import recipe

options = recipe.options(__doc__.splitlines()[0], steps=40).parse_args()


def preferred(model, words, file):
    """Of the pairs, how many the model has in the right order."""
    import torch

    right, pairs = 0, recipe.export(file, "dpo")[: options.rows]
    for pair in pairs:
        prompt = words.apply_chat_template(pair["prompt"], add_generation_prompt=True, tokenize=False)
        ends = [pair[side][-1]["content"] + words.eos_token for side in ("chosen", "rejected")]
        with torch.no_grad(), recipe.half():
            chosen, rejected = recipe.likelihoods(model, words, prompt, ends)
        right += chosen > rejected
    return {"right": right, "pairs": len(pairs)}


def main():
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    files = recipe.parts(options)
    model, words = recipe.tracer(options.model)
    before = {part: preferred(model, words, files[part]) for part in recipe.PLANTED}
    keys = ("prompt", "chosen", "rejected")
    rows = [{key: row[key] for key in keys} for row in recipe.export(files["known"], "dpo")]
    args = recipe.settings(DPOConfig, options, learning_rate=5e-5, max_length=None, beta=0.1)
    trainer = DPOTrainer(model, args=args, train_dataset=Dataset.from_list(rows), processing_class=words, peft_config=recipe.adapter())
    seconds = recipe.trained(trainer, options)
    after = {part: preferred(trainer.model.eval(), words, files[part]) for part in recipe.PLANTED}
    print("| measured on | pairs | clean reply likelier, before | after |\n|---|--:|--:|--:|")
    for part, what in recipe.PLANTED.items():
        cells = (recipe.counted(figures[part]["right"], figures[part]["pairs"]) for figures in (before, after))
        print(f"| {what} | {after[part]['pairs']} | {' | '.join(cells)} |")
    recipe.keep(options.out / "result.json", {"before": before, "after": after, "seconds": round(seconds)})


if __name__ == "__main__":
    main()
