"""A run as it is read: each body byte for byte, and what the program says of it."""

import base64
import json
import subprocess
import threading
import time
from hashlib import sha256

import aegis
import pytest
from aegis.bodies import DEEPEST, Library
from conftest import FIXTURES, proxied, record, rolls, told


def digests(pairs):
    return [tuple(sha256(body).hexdigest() for body in pair) for pair in pairs]


def read_pairs(run):
    return [(step.request, step.response) for step in run.steps]


def check_against_program(program, run):
    """All that `aegis show --all` tells of a run is what was read."""
    shown = told(program, "show", run.directory, "--all")
    assert (shown["run"], shown["task"], shown["ended"], shown["upstream"]) == (run.name, run.task, run.ended, run.upstream)
    assert shown["outcome"]["verdict"] == run.outcome["verdict"]
    assert (shown["sealed"], shown["open_exchanges"]) == (run.sealed, run.open_exchanges)
    errors = [(one["agent"], one["step"], one["call"], one["side"]) for one in (shown["label"] or {}).get("errors", [])]
    assert errors == [(one["agent"], one["step"], one["call"], one["side"]) for one in run.labels]
    assert [step["step"] for step in shown["steps"]] == [step.index for step in run.steps]
    for one, step in zip(shown["steps"], run.steps):
        for key in (
            "call",
            "agent",
            "instance",
            "ambiguous",
            "overlapping",
            "surface",
            "method",
            "path",
            "source",
            "evidence",
            "status",
            "usage",
        ):
            assert one[key] == getattr(step, key), (run.name, step.index, key)
        assert one["cause"] == step.last.cause and len(one["attempts"]) == len(step.attempts)
        for key, body in (("request", step.request), ("request_sent", step.request_sent), ("reply", step.response)):
            assert same(one[key], body), (run.name, step.index, key)
    return len(run.steps)


def same(shown, body):
    """Whether what is shown of a body is that body: its JSON, else its text, else its bytes."""
    if not body:
        return shown in (None, "")
    if isinstance(shown, dict) and list(shown) == ["base64"]:
        return base64.b64decode(shown["base64"]) == body
    try:
        return shown == json.loads(body)
    except ValueError:
        return shown == body.decode()


def test_every_body_is_the_one_that_passed(odd):
    run = aegis.run(odd.directory)
    assert run.sealed and digests(read_pairs(run)) == digests(odd.wire)
    assert all(attempt.exact for step in run.steps for attempt in step.attempts)
    assert run.verify() > 2 * 70 and (odd.directory / "log.jsonl.zst").is_file() and list((odd.directory / "blobs").iterdir())


def test_bodies_are_read_in_any_order(odd):
    run = aegis.run(odd.directory)
    read = [(step.request, step.response) for step in reversed(run.steps)]
    assert digests(reversed(read)) == digests(odd.wire)


def test_a_log_that_rolled_is_read_open_and_sealed(rolled):
    until = time.monotonic() + 20
    while not (rolled.directory / "head.jsonl.zst").is_file():
        assert time.monotonic() < until, "the log did not roll"
        time.sleep(0.05)
    live = aegis.run(rolled.directory)
    assert not live.sealed and live.ended is None and digests(read_pairs(live)) == digests(rolled.wire)
    rolled.proxy.end()
    sealed = aegis.run(rolled.directory)
    assert sealed.sealed and sealed.ended and digests(read_pairs(sealed)) == digests(rolled.wire)
    assert sealed.verify() == live.verify()


def test_the_program_says_the_same_of_the_demo(program, demo):
    steps = sum(check_against_program(program, run) for run in list(aegis.corpus(demo / "logs"))[::5])
    assert steps > 100


def test_every_body_of_the_demo_fits_its_hash(demo):
    assert sum(run.verify() for run in aegis.corpus(demo / "logs")) > 1000


def test_the_program_says_the_same_of_bodies_of_all_kinds(program, odd):
    check_against_program(program, aegis.run(odd.directory))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_recordings_of_an_earlier_version(program, path):
    run = aegis.run(path)
    assert run.verify() and check_against_program(program, run) == 3
    assert run.label["status"] in ("delivered", "verified")


def test_messages_of_whole_and_streamed_replies(odd):
    run = aegis.run(odd.directory)
    words = [step.text for step in run.steps[:7]]
    assert words[0] == words[1] != "" and words[2] == "é" * 60 and words[4] == "é and more"
    (message,) = run.steps[5].response_messages
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [("call_1", "calculator", '{"a":1}')]
    assert run.steps[6].text == words[0] * 3, "a reply that is gzip"
    assert run.steps[7].request_messages == [] and run.steps[7].model is None and run.steps[0].model == "some-model"
    assert run.agents == {"solver": len(run.steps)} and run.steps[5].last.streamed and len(run.steps[5].last.frames) == 4
    assert run.steps[0].duration_us > 0


def test_each_message_is_said_once(demo):
    run = next(run for run in aegis.corpus(demo / "logs") if "ada" in run.agents)
    said = list(run.messages)
    assert sum(one.is_reply for one in said) == len(run.steps)
    questions = [one for one in said if one.agent == "ada" and one.message.role == "system"]
    assert len(questions) == 1 < run.agents["ada"]


def test_injections_and_labels(demo):
    runs = [run for run in aegis.corpus(demo / "logs") if run.labels]
    assert runs
    for run in runs:
        for error in run.labels:
            step = run.step(error["step"])
            assert (step.agent, step.call) == (error["agent"], error["call"])
            (injected,) = (one for one in step.injected if one["operator"] == error["operator"])
            assert (injected["before"], injected["after"]) == (error["before_bytes"], error["after_bytes"])
            altered = step.last.delivered if error["side"] == "response" else step.request_sent
            assert altered not in (None, step.last.reply, step.request)
    assert all(run.plan and run.manifest["seed"] == 7 for run in runs)


def test_a_talk_of_thousands_of_bodies_is_read_in_any_order(tmp_path):
    """What a body grows from is bounded by its length, so that no body costs more than reading it."""
    library, wanted, before = Library(tmp_path), [], b""
    for number in range(6000):
        # As long as the one before: its beginning changes, and the rest is shared.
        whole = b"%05d" % number + b"x" * 50
        record = {"hash": f"{number:032x}", "len": len(whole), "segs": [f"{number:05}"], "parent": f"{number - 1:032x}", "shared_end": 50}
        library.add_body(record if before else {"hash": f"{0:032x}", "len": 55, "segs": [whole.decode()]})
        wanted.append(whole)
        before = whole
    assert max(body.depth for body in library._bodies.values()) <= DEEPEST + 1
    for number in (5999, 0, 3000, *range(5900, 100, -91)):
        assert library.read(f"{number:032x}") == wanted[number]


def test_an_imported_run_says_that_its_bodies_were_made(program, demo, tmp_path):
    subprocess.run([program, "export", demo, "--to", "otlp", "--out", tmp_path / "demo.jsonl"], check=True, capture_output=True)
    made = [program, "import", "--from", "otlp", tmp_path / "demo.jsonl", "--log-dir", tmp_path / "logs"]
    subprocess.run(made, check=True, capture_output=True)
    runs = list(aegis.corpus(tmp_path / "logs"))
    assert len(runs) > 20 and {attempt.origin for step in runs[0].steps for attempt in step.attempts} == {"remade"}
    assert not runs[0].steps[0].last.exact and sum(check_against_program(program, run) for run in runs[::5]) > 20


def test_a_run_is_read_while_it_is_written_rolled_and_sealed(upstream, tmp_path):
    """Whatever moment it is read at: what is there is a beginning of what passed."""
    pairs, seen, errors, over = rolls(), [], [], threading.Event()
    proxy = proxied(upstream, tmp_path, run="moving").start()

    def read():
        while not over.is_set():
            try:
                run = aegis.run(proxy.directory)
                closed = [(step.request, step.response) for step in run.steps if step.last.cause]
                seen.append((len(closed), digests(closed)))
            except Exception as error:
                errors.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    recorded = record(proxy, upstream, pairs)
    proxy.end()
    time.sleep(0.2)
    over.set()
    for reader in readers:
        reader.join()
    assert not errors and len({count for count, _ in seen}) > 2
    wanted = digests(recorded.wire)
    assert all(read == wanted[:count] for count, read in seen) and seen[-1][0] == len(wanted)
