"""Logs that are open, torn, damaged, or of a later version; and what unpacks them."""

import builtins
import json
import shutil
import signal
import subprocess
import zlib

import aegis
import pytest
from aegis import packed
from conftest import chat, told


def line(seq, record, version=1):
    text = json.dumps(record, separators=(",", ":"))
    return f'{{"v":{version},"seq":{seq},"crc":"{zlib.crc32(text.encode()):08x}","rec":{text}}}\n'.encode()


@pytest.fixture
def killed(program, tmp_path):
    """A run whose writer was killed after its second call."""
    proxy = aegis.Proxy(upstream="simulator", log_dir=tmp_path, run="killed", set_environment=False).start()
    for number in range(2):
        answer = post(proxy, chat([{"role": "user", "content": f"A box holds {number} eggs. How many eggs do 7 boxes hold?"}]))
        assert json.loads(answer)["choices"]
    proxy._child.process.send_signal(signal.SIGKILL)
    proxy._child.finish()
    return proxy.directory


def post(proxy, body):
    import urllib.request

    asked = urllib.request.Request(f"{proxy.base_url}/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read()


def test_a_run_whose_writer_was_killed_is_read(killed):
    run = aegis.run(killed)
    assert not run.sealed and run.ended is None and run.open_exchanges == 0 and run.torn == 0
    assert [step.status for step in run.steps] == [200, 200] and run.verify()


def test_a_torn_end_is_left_out_and_damage_before_it_is_refused(killed):
    log = killed / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-20])
    run = aegis.run(killed)
    assert run.torn > 0 and run.open_exchanges == 1 and run.steps[1].status is None
    lines = whole.splitlines(keepends=True)
    for broken in ([lines[0][:-9], *lines[1:]], [*lines[:2], *lines[3:]], [lines[0].replace(b"eggs", b"eggz"), *lines[1:]]):
        log.write_bytes(b"".join(broken))
        with pytest.raises(aegis.Corrupt, match="log.jsonl` line [123]"):
            aegis.run(killed)


def test_later_versions_are_told_from_damage(killed):
    (killed / "log.jsonl").write_bytes(line(0, {"kind": "open"}, version=2))
    with pytest.raises(aegis.FutureFormat, match="format 2"):
        aegis.run(killed)
    (killed / "log.jsonl").write_bytes(line(0, {"kind": "of a later version"}))
    assert aegis.run(killed).steps == []
    (killed / "run.json").write_text('{"format": 9}')
    with pytest.raises(aegis.FutureFormat, match="format 9"):
        aegis.run(killed)


@pytest.mark.parametrize(
    "body",
    [
        {"hash": "0" * 32, "len": 5},
        {"hash": "0" * 32, "len": 5, "segs": ["four"]},
        {"hash": "0" * 32, "len": 1, "segs": [["1" * 32]]},
        {"hash": "0" * 32, "len": 1, "segs": [{"blob": "../run.json"}]},
        {"hash": "0" * 32, "len": 1, "segs": [{"blob": "1" * 32}]},
        {"hash": "0" * 32, "len": 4, "parent": "1" * 32, "shared": 4},
        {"hash": "0" * 32, "len": 4, "frames": [[1, 4, 0, ""]]},
    ],
)
def test_what_refers_to_nothing_is_damage(killed, body):
    close = {"kind": "close", "step": 0, "attempt": 0, "cause": "complete", "reply": body}
    lines = (killed / "log.jsonl").read_bytes().splitlines(keepends=True)
    at = next(at for at, one in enumerate(lines) if b'"kind":"close"' in one)
    (killed / "log.jsonl").write_bytes(b"".join([*lines[:at], line(at, close)]))
    with pytest.raises(aegis.Corrupt):
        aegis.run(killed)


def test_a_log_that_does_not_fit_its_seal_is_refused(odd, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(odd.directory, copy)
    seal = json.loads((copy / "seal.json").read_text())
    (copy / "seal.json").write_text(json.dumps(seal | {"records": seal["records"] + 1}))
    with pytest.raises(aegis.Corrupt, match="does not fit"):
        aegis.run(copy)
    (copy / "log.jsonl.zst").unlink()
    with pytest.raises(aegis.Corrupt, match="is missing"):
        aegis.run(copy)
    with pytest.raises(aegis.NotARun, match="run.json"):
        aegis.run(tmp_path)


def without(monkeypatch, *modules):
    """Imports of these modules fail."""
    real = builtins.__import__

    def imports(name, *more):
        if name in modules:
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(packed, "READERS", [reader for reader in packed.READERS if reader[0] not in modules])
    monkeypatch.setattr(builtins, "__import__", imports)


ALL = [name for name, _ in packed.READERS]


def test_the_program_zstd_serves_where_no_module_does(odd, monkeypatch):
    if shutil.which("zstd") is None:
        pytest.fail("the program `zstd` is not installed: apt-get install zstd")
    with_module = [step.response for step in aegis.run(odd.directory).steps]
    without(monkeypatch, *ALL)
    assert [step.response for step in aegis.run(odd.directory).steps] == with_module


def test_without_either_it_says_what_to_type(odd, monkeypatch):
    without(monkeypatch, *ALL)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(aegis.PackageMissing, match="pip install zstandard"):
        aegis.run(odd.directory)


def test_hashes_need_a_package_and_it_is_named(odd, monkeypatch):
    run = aegis.run(odd.directory)
    without(monkeypatch, "xxhash")
    with pytest.raises(aegis.PackageMissing, match="pip install xxhash"):
        run.verify()


@pytest.mark.parametrize("by", ["module", "program"])
def test_frames_that_are_cut_count_only_where_they_may_be(by, monkeypatch):
    if by == "program":
        without(monkeypatch, *ALL)
    pack = lambda text: subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout
    two = pack(b"one\ntwo\n") + pack(b"three\n")
    assert packed.unpacked(two, "a") == b"one\ntwo\nthree\n"
    assert packed.unpacked(two[:-3], "a", may_be_cut=True).startswith(b"one\ntwo\n")
    for damaged in (two[:-3], b"no zstd at all"):
        with pytest.raises(aegis.Corrupt):
            packed.unpacked(damaged, "a")


def test_facts_are_read_in(program, demo, tmp_path):
    source = next(run.directory for run in aegis.corpus(demo / "logs") if run.labels)
    copy = tmp_path / "amended"
    shutil.copytree(source, copy)
    before = aegis.run(copy)
    (tmp_path / "aegis.toml").write_text('[[agent]]\nname = "everybody"\nsystem_contains = "You are"\n')
    (tmp_path / "task.txt").write_text("count")
    given = ["--outcome", "success", "--task", str(tmp_path / "task.txt"), "--by", "ada", "--roster", str(tmp_path / "aegis.toml")]
    subprocess.run([program, "amend", str(copy), *given], check=True, capture_output=True)
    run = aegis.run(copy)
    assert (run.outcome["verdict"], run.task, run.agents) == ("success", "count", {"everybody": len(run.steps)})
    assert {fact["fact"] for fact in run.facts} == {"outcome", "task", "roster"} and run.facts[0]["by"] == "ada"
    assert [step.call for step in run.steps] == list(range(len(run.steps)))
    assert before.outcome["verdict"] != "success" and run.labels[0]["agent"] == "everybody" != before.labels[0]["agent"]
    shown = told(program, "show", copy)
    assert [(one["agent"], one["call"], one["evidence"]) for one in shown["steps"]] == [
        (step.agent, step.call, step.evidence) for step in run.steps
    ]
    assert shown["label"]["errors"][0]["agent"] == "everybody"


def test_secrets_are_masked_in_a_record_and_the_step_says_so(tmp_path):
    key = "sk-abcdefghijklmnop1234567890ABCDEFGH"
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, set_environment=False) as proxy:
        post(proxy, chat([{"role": "user", "content": f"My key is {key}. A box holds 6 eggs. How many eggs do 7 boxes hold?"}]))
    (step,) = proxy.run.steps
    assert key.encode() not in step.request and b"*" * len(key) in step.request and not step.last.exact
    assert proxy.run.verify()


def test_a_corpus_passes_over_what_was_made_for_a_run(demo, killed, tmp_path):
    runs = aegis.corpus(demo / "logs")
    assert len(runs) == len(list(runs)) == 132
    trial = killed / "trials" / "one"
    shutil.copytree(killed, trial, ignore=shutil.ignore_patterns("trials"))
    assert len(aegis.corpus(killed.parent)) == 1 and len(aegis.corpus(killed.parent, trials=True)) == 2
    (trial / "log.jsonl").write_bytes(b"\n" + (trial / "log.jsonl").read_bytes())
    some = aegis.corpus(killed.parent, trials=True, skip_unreadable=True)
    assert len(list(some)) == 1 and list(some.skipped) == [trial]
    with pytest.raises(aegis.Corrupt):
        list(aegis.corpus(killed.parent, trials=True))
    with pytest.raises(aegis.NotARun):
        aegis.corpus(tmp_path / "nothing")
