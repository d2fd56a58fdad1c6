"""Records that nobody wrote: each is read or refused with an error of this package, and nothing else is raised."""

import json
import random
import shutil
import zlib

import aegis
import pytest
from conftest import FIXTURES

ODD = [None, -1, 5, 10**30, "x", [], {}, [1], {"a": 1}, True, 1.5, {"b64": "%"}, {"blob": "0" * 32}, ["0" * 32, 7]]
ROSTER = {"file": "f", "agent": [], "named": [{"agent": "a", "evidence": "e", "steps": [0, 1]}], "agents": {"a": 2}}
FACTS = [
    {"format": 1, "at": "now", "source": "amend", "fact": "roster", "roster": ROSTER},
    {"format": 1, "at": "now", "source": "amend", "fact": "outcome", "outcome": {"verdict": "success"}},
    {"format": 1, "at": "now", "source": "amend", "fact": "task", "task": "count"},
]


def changed(value, chance):
    """The same value, with other ones here and there."""
    if chance.random() < 0.04:
        return chance.choice(ODD)
    if isinstance(value, dict):
        value = {key: changed(one, chance) for key, one in value.items()}
        if value and chance.random() < 0.05:
            value.pop(chance.choice(list(value)))
        return value
    if isinstance(value, list):
        return [changed(one, chance) for one in value]
    return value + chance.choice([-1, 1, 100]) if type(value) is int and chance.random() < 0.05 else value


def written(records):
    texts = [json.dumps(record, separators=(",", ":")).encode() for record in records]
    return b"".join(b'{"v":1,"seq":%d,"crc":"%08x","rec":%b}\n' % (at, zlib.crc32(text), text) for at, text in enumerate(texts))


def read_all(directory):
    """Read whatever a run has."""
    run = aegis.run(directory)
    for step in run.steps:
        assert [step.request, step.response, step.request_sent, step.text, step.model, step.duration_us, step.usage, repr(step)]
    assert [list(run.messages), run.labels, run.outcome, run.agents, run.task, run.ended, run.open_exchanges, repr(run)]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_stands_in_a_record(seed, tmp_path):
    chance, read = random.Random(seed), 0
    whole = [json.loads(line)["rec"] for line in (FIXTURES[0] / "log.jsonl").read_bytes().splitlines()]
    directory = tmp_path / "run"
    shutil.copytree(FIXTURES[0], directory)
    (directory / "seal.json").unlink()
    manifest = json.loads((directory / "run.json").read_text())
    for _ in range(150):
        records = list(whole)
        at = chance.randrange(len(records))
        records[at] = changed(records[at], chance)
        if chance.random() < 0.2:
            chance.shuffle(records)
        (directory / "log.jsonl").write_bytes(written(records))
        (directory / "run.json").write_text(json.dumps(changed(manifest, chance) if chance.random() < 0.2 else manifest))
        facts = [changed(fact, chance) for fact in FACTS if chance.random() < 0.3]
        (directory / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
        try:
            read_all(directory)
            read += 1
        except aegis.AegisError:
            pass
    assert 30 < read < 150


def test_depth_is_no_way_round(tmp_path):
    directory = tmp_path / "run"
    shutil.copytree(FIXTURES[0], directory)
    (directory / "seal.json").unlink()
    text = b'{"kind":"note","at":"now","text":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    (directory / "log.jsonl").write_bytes(b'{"v":1,"seq":0,"crc":"%08x","rec":%b}\n' % (zlib.crc32(text), text))
    with pytest.raises(aegis.Corrupt):
        aegis.run(directory)
