"""Trains a tiny random model on exported rows with TRL, and reads them with verl. Prints one JSON line per check.

    train.py AEGIS FOLDER

The model is made here (two layers, a tokenizer trained on the rows): nothing is fetched from a hub.
"""

import copy
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "", "WANDB_DISABLED": "true"}

import torch
from datasets import load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from trl.data_utils import is_conversational

HERE = Path(__file__).resolve()
RECIPES = HERE.parents[3] / "examples" / "train"
sys.path[:0] = [str(HERE.parents[1] / "formats"), str(HERE.parents[3] / "examples" / "rewards")]

from samples import clean, failure  # noqa: E402
from trl_reward import attribution_reward  # noqa: E402

AEGIS, FOLDER = sys.argv[1], Path(sys.argv[2])
RUNS = 6
# The samples are made by hand: they have no changed bytes, which lint rightly minds.
ALLOWED = ["nothing-changed", "not-delivered", "shared-steps", "vocabulary", "run-id", "twin-differs"]
# ChatML, with tool calls and tools as Qwen's template writes them.
TEMPLATE = """{%- if tools %}{{- '<|im_start|>system\\n# Tools\\n' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def main():
    rows = [sample(number) for number in range(1, RUNS + 1) for sample in (clean, failure)]
    (FOLDER / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    exported = [export("sft"), export("grpo"), export("dpo"), export("verl"), export("sft", "tools", "--answer-by-call")]
    if not all(exported):
        return
    model = tokenizer()
    for test in (sft, sft_with_tools, dpo, grpo, verl, verl_config, recipes):
        try:
            test(model)
        except Exception as error:
            check(f"{test.__name__} ends", False, f"{type(error).__name__}: {error}")


def export(name, file=None, *more):
    out = FOLDER / f"{file or name}.parquet"
    allowed = [word for rule in ALLOWED for word in ("--allow", rule)]
    command = [AEGIS, "export", str(FOLDER / "own.jsonl"), "--one-file", "--to", name, "--out", str(out), *allowed, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    return check(f"{out.name} is exported", done.returncode == 0, done.stderr)


def rows_of(name):
    return load_dataset("parquet", data_files=str(FOLDER / f"{name}.parquet"), split="train", cache_dir=str(FOLDER / "cache"))


def tokenizer():
    """A byte-level tokenizer that knows the words of the rows."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([str(row) for row in rows_of("sft")], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = TEMPLATE
    return fast


def tiny(words):
    """A random model of two small layers."""
    torch.manual_seed(7)
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id,
    )  # fmt: skip
    return Qwen2ForCausalLM(config)


def settings(kind, **more):
    always = {"max_steps": 2, "per_device_train_batch_size": 2, "logging_steps": 1, "save_strategy": "no", "report_to": []}
    return kind(output_dir=str(FOLDER / kind.__name__), use_cpu=True, bf16=False, seed=7, **(always | more))


def stepped(trainer):
    """Two steps, each with a finite loss; what was logged."""
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    good = trainer.state.global_step == 2 and len(losses) == 2 and all(abs(loss) < 1e4 for loss in losses)
    return good, trainer.state.log_history


def sft(words):
    rows = rows_of("sft")
    check("TRL takes sft rows for conversations", is_conversational(rows[0]), rows[0])
    trainer = SFTTrainer(tiny(words), settings(SFTConfig, max_length=None), train_dataset=rows, processing_class=words)
    batch = next(iter(trainer.get_train_dataloader()))
    whole = words.decode(batch["input_ids"][0])
    check("sft rows collate, answers whole", "faulty_agents" in whole.rsplit("<|im_start|>assistant", 1)[-1], whole[-300:])
    check("two steps of SFT", *stepped(trainer))


def sft_with_tools(words):
    rows = rows_of("tools")
    trainer = SFTTrainer(tiny(words), settings(SFTConfig, max_length=None), train_dataset=rows, processing_class=words)
    whole = words.decode(next(iter(trainer.get_train_dataloader()))["input_ids"][0])
    seen = "# Tools" in whole and "report_faulty_agents" in whole and "<tool_call>" in whole
    check("the chat template sees the tools and the call", seen, whole)
    check("two steps of SFT with tools", *stepped(trainer))


def dpo(words):
    # The reference model is loaded anew from where the model came from.
    tiny(words).save_pretrained(FOLDER / "model")
    trainer = DPOTrainer(str(FOLDER / "model"), args=settings(DPOConfig), train_dataset=rows_of("dpo"), processing_class=words)
    check("two steps of DPO", *stepped(trainer))


def grpo(words):
    """Two steps whose rewards differ. A random model writes nothing that can be read, so each answer that some row has
    is made one token, and a completion is one of these or nothing said."""
    rows, seen = rows_of("grpo"), []
    answers = sorted({*rows["ground_truth"], json.dumps({"faulty_agents": [{"agent_name": "critic", "error_type": "FM-3.3"}]})})
    speaking = copy.deepcopy(words)
    speaking.add_tokens(answers)
    allowed = {*speaking.convert_tokens_to_ids(answers), speaking.eos_token_id}
    sampled = {"suppress_tokens": [token for token in range(len(speaking)) if token not in allowed]}

    def reward(completions, ground_truth, **more):
        given = attribution_reward(completions, ground_truth, **more)
        seen.append(given)
        return given

    limits = {"num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 1, "generation_kwargs": sampled}
    model = tiny(speaking)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    trainer = GRPOTrainer(model, reward, args=settings(GRPOConfig, **limits), train_dataset=rows, processing_class=speaking)
    good, log = stepped(trainer)
    check("two steps of GRPO", good, log)
    check("GRPO asked our reward, and got different ones", seen and all(len(set(given)) > 1 for given in seen), seen)
    norms = [entry["grad_norm"] for entry in log if "grad_norm" in entry]
    moved = sum(not torch.equal(before[name], weight) for name, weight in model.named_parameters())
    check("each step of GRPO has a gradient and moves the weights", min(norms, default=0) > 0 and moved, (norms, moved))


def verl(words):
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"prompt_key": "prompt", "max_prompt_length": 4096, "cache_dir": str(FOLDER / "verl"), "filter_overlong_prompts": True})
    read = RLHFDataset(data_files=str(FOLDER / "verl.parquet"), tokenizer=words, config=config)
    row = read[1]
    check("verl reads its rows", len(read) == 2 * RUNS and row["data_source"] == "maserror/agent_detection", row)
    truth = row["reward_model"]["ground_truth"]
    from verl_reward import compute_score

    wanted = ["data_source", "solution_str", "ground_truth", "extra_info"]
    check("the reward has verl's signature", list(inspect.signature(compute_score).parameters) == wanted)
    score = compute_score(row["data_source"], truth, truth, row["extra_info"])
    check("the reward of a row's own answer", score == 1.0, score)


def verl_config(_):
    """The configuration of `examples/train` in verl's own loader and checks."""
    from hydra import compose, initialize_config_dir
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.config import omega_conf_to_dataclass

    with initialize_config_dir(config_dir=str(RECIPES), version_base=None):
        config = compose("verl_grpo")
    rollout, actor = config.actor_rollout_ref.rollout, config.actor_rollout_ref.actor
    found = (config.data.train_batch_size, rollout.n, float(actor.optim.lr), config.algorithm.adv_estimator)
    check("verl composes the recipe, with AgenTracer's settings", found == (32, 8, 1e-6, "grpo"), found)
    made = omega_conf_to_dataclass(actor)
    check("verl's own checks take its actor", made.ppo_mini_batch_size == 32, made)
    config.reward.custom_reward_function.path = str(RECIPES / "gated_reward.py")
    reward = get_custom_reward_fn(config)
    truth = json.dumps({"faulty_agents": [{"agent_name": "solver", "step": 1, "error_type": "FM-2.6"}]})
    said = [f"<think>…</think><answer>solver|{step}</answer>" for step in (1, 2)] + ["solver, 1"]
    given = [reward(data_source="x", solution_str=text, ground_truth=truth, extra_info=None) for text in said]
    near = all(abs(one - other) < 1e-6 for one, other in zip(given, (1.0, 0.5 + 0.5 * 0.6065306597, 0.0)))
    check("its reward is half the agent, half the step, and the form", near, given)
    clipped(made)


def clipped(actor):
    """The narrowing clip by its formula, and as verl finds and asks it."""
    sys.path.insert(0, str(RECIPES))
    os.environ["AEGIS_CLIP"] = "0.3,0.2,10,2"
    import clip_schedule
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla, get_policy_loss_fn

    wanted = {0: 0.3, 5: 0.25, 9: 0.21, 10: 0.2, 99: 0.2}
    found = {step: clip_schedule.clip_at(step, 0.3, 0.2, 10) for step in wanted}
    check("the clip narrows in a straight line, and stays", all(abs(found[step] - clip) < 1e-9 for step, clip in wanted.items()), found)
    refused = 0
    for text in ("0.3", "0.2,0.3,10,2", "0.3,0.2,0,2", "0.3,0.2,10,0", "x,0.2,10,2"):
        try:
            clip_schedule.settings(text)
        except ValueError:
            refused += 1
    check("settings that mean nothing are refused", refused == 5, refused)
    old = torch.zeros(1, 1)
    rows = {"old_log_prob": old, "log_prob": old + 0.5, "advantages": old + 1, "response_mask": old + 1}
    loss = get_policy_loss_fn("narrowing_clip")
    said = [loss(**rows, loss_agg_mode="token-mean", config=actor) for _ in range(6)]
    # A ratio of e^0.5 is clipped to 1 + clip: so much is the loss below nothing.
    values, clips = [-float(value) for value, _ in said], [metrics["actor/clip_ratio"] for _, metrics in said]
    good = all(abs(value - 1 - clip) < 1e-6 for value, clip in zip(values, clips)) and len(set(clips[::2])) == 3 and clips[0] == clips[1]
    check("verl's loss is asked with the clip of each step", good, (values, clips))
    plain = -float(compute_policy_loss_vanilla(**rows, config=actor)[0])
    check("and its settings stay as they were", abs(plain - 1 - actor.clip_ratio_high) < 1e-6, plain)


def recipes(words):
    """Two steps of each recipe on a random model, and once more: what is done is not done again."""
    model = FOLDER / "small"
    tiny(words).save_pretrained(model)
    words.save_pretrained(model)
    data = FOLDER / "recipes.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in two_systems()))
    for name in ("contrastive", "sft_trl", "dpo_trl", "grpo_trl"):
        more = ("--rollouts", "2", "--tokens", "4") if name == "grpo_trl" else ()
        recipe(f"two steps of {name}.py, and its table", name, data, model, "--steps", "2", "--rows", "2", "--batch", "2", *more)
    files = FOLDER / "whowhen"
    command = [AEGIS, "export", str(FOLDER / "own.jsonl"), "--one-file", "--to", "whowhen", "--out", str(files)]
    subprocess.run([*command, *(word for rule in ALLOWED for word in ("--allow", rule))], check=True, capture_output=True)
    small = ("--steps", "2", "--rows", "2", "--who-when", str(files))
    recipe("Who&When files as a column", "contrastive", data, model, *small, out="column", says="| Who&When |")
    small = ("--steps", "2", "--rows", "2")
    recipe("each part of the contrastive recipe left out in turn", "ablations", data, model, *small, says="| hierarchy | ")
    once = ("--without", "mixture", "--without", "attention")
    recipe("two parts left out at once", "contrastive", data, model, *small, *once, out="without")
    # SmolLM2 as its package holds it, packed: loaded, trained, kept as a model that the next recipe begins with.
    once = ("--steps", "1", "--rows", "1", "--batch", "1")
    recipe("SFT of the packaged model", "sft_trl", data, "smollm2", *once, out="smollm2")
    left = FOLDER / "smollm2" / "model"
    recipe("GRPO begins with what SFT left", "grpo_trl", data, left, *once, "--rollouts", "2", "--tokens", "4", out="begun")
    asked(left, FOLDER / "smollm2" / "known.sft.jsonl")


def asked(model, rows):
    """What SFT left is served, and `attribute` asks it in the words of the rows that it was trained on."""
    known = rows.with_name("known.jsonl").read_text().splitlines()
    some = [next(line for line in known if json.loads(line)["kind"] == kind) for kind in ("failure", "clean")]
    folder = FOLDER / "asked"
    folder.mkdir(exist_ok=True)
    (folder / "some.jsonl").write_text("".join(line + "\n" for line in some))
    command = [sys.executable, str(RECIPES / "serve.py"), str(model), "--port", "0", "--answer", "24"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        url = json.loads(server.stdout.readline())["url"]
        (folder / "trained.toml").write_text(f'prompt = "{os.path.relpath(rows, folder)}"\nupstream = "{url}"\nmodel = "trained"\n')
        command = [AEGIS, "attribute", "some.jsonl", "--tracer", "trained.toml", "--out", "said.jsonl", "--log-dir", "logs", "--format", "json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        server.stdin.close()
    # After one step of training its words may name nobody: then it was asked twice, and `attribute` says that it found nothing.
    good = done.returncode in (0, 1) and (folder / "said.jsonl").exists()
    if not check("what SFT left is served, and asked", good, done.stdout[-500:] + done.stderr[-1500:]):
        return
    said = [json.loads(line) for line in (folder / "said.jsonl").read_text().splitlines()]
    check("a tracer is asked about the clean run, too", [row["id"] for row in said] == [json.loads(line)["id"] for line in some], said)
    run = folder / "logs" / json.loads(done.stdout)["judge_run"]
    subprocess.run([AEGIS, "export", str(run), "--to", "har", "--out", str(folder / "asked.har")], check=True, capture_output=True)
    entries = json.loads((folder / "asked.har").read_text())["log"]["entries"]
    questions = [json.loads(entry["request"]["postData"]["text"])["messages"] for entry in entries]
    rows = {row["id"]: row["messages"][:-1] for row in map(json.loads, rows.read_text().splitlines())}
    wanted = [rows[row["id"]] for row in said]
    check("its questions are the rows that it was trained on", all(row in questions for row in wanted), (wanted, questions))


def recipe(what, name, data, model, *more, out=None, says="| measured on |"):
    """Runs a recipe to its end."""
    out = FOLDER / (out or name)
    command = [sys.executable, str(RECIPES / f"{name}.py"), str(data), "--out", str(out), "--model", str(model)]
    environment = os.environ | {"AEGIS_BIN": AEGIS, "AEGIS_ALLOW": " ".join(ALLOWED)}
    done = subprocess.run([*command, "--held-out", "other", *more], env=environment, capture_output=True, text=True, timeout=300)
    good = done.returncode == 0 and (out / "result.json").exists() and says in done.stdout
    check(what, good, done.stdout[-500:] + done.stderr[-1500:])


def two_systems():
    """Runs of a system to learn from and of one that is held out."""
    rows = [sample(number) for number in range(1, RUNS + 1) for sample in (clean, failure)]
    other = json.loads(json.dumps(rows[:4]))
    for row in other:
        row["system"], row["id"] = "other", f"{row['id']}-b"
        row["clean_twin"] = row["clean_twin"] and f"{row['clean_twin']}-b"
    return rows + other


def check(name, ok, why=""):
    print(json.dumps({"check": name, "ok": bool(ok), "why": str(why)[-2000:]}), flush=True)
    return ok


if __name__ == "__main__":
    main()
