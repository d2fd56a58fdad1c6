"""The proxy around a piece of a program."""

import asyncio
import json
import os
import sys
import urllib.request

import aegis
import pytest
from conftest import chat

EGGS = chat([{"role": "user", "content": "A box holds 6 eggs. How many eggs do 7 boxes hold?"}])


def ask(base):
    asked = urllib.request.Request(f"{base}/chat/completions", EGGS, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_a_run_is_recorded_and_sealed(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://before")
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, run="mine") as proxy:
        assert os.environ["OPENAI_BASE_URL"] == proxy.base_url and os.environ["ANTHROPIC_BASE_URL"] == proxy.url
        assert os.environ["OPENAI_API_KEY"]
        assert proxy.run.steps == []
        assert "42" in ask(os.environ["OPENAI_BASE_URL"]) and "42" in ask(proxy.agent_url("solver"))
        assert not proxy.run.sealed and proxy.run.steps[1].agent == "solver"
    assert os.environ["OPENAI_BASE_URL"] == "http://before" and "OPENAI_API_KEY" not in os.environ
    assert proxy.run.sealed and proxy.run.name == "mine" and "left open" in proxy.talk
    proxy.end()
    with pytest.raises(aegis.AlreadyRecorded, match="run=…"):
        aegis.Proxy(upstream="simulator", log_dir=tmp_path, run="mine").start()


def test_async_and_the_environment_left_alone(tmp_path):
    async def talk():
        async with aegis.Proxy(upstream="simulator", log_dir=tmp_path, set_environment=False) as proxy:
            assert "OPENAI_BASE_URL" not in os.environ and proxy.environment["OPENAI_BASE_URL"] == proxy.base_url
            await asyncio.to_thread(ask, proxy.base_url)
            return proxy

    proxy = asyncio.run(talk())
    assert proxy.run.sealed and proxy.name.startswith("proxy-")


def test_two_proxies_have_names_of_their_own(tmp_path):
    options = {"upstream": "simulator", "log_dir": tmp_path, "set_environment": False}
    with aegis.Proxy(**options) as one, aegis.Proxy(**options) as other:
        ask(one.base_url), ask(other.base_url)
    assert [len(run.steps) for run in aegis.corpus(tmp_path)] == [1, 1]


def test_a_plan_is_for_the_run(tmp_path):
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, plan="rate-limit") as proxy:
        with pytest.raises(urllib.error.HTTPError, match="429"):
            ask(proxy.base_url)
    assert proxy.run.steps[0].status == 429 and proxy.run.steps[0].injected[0]["operator"] == "status"


def test_plans_are_injected_one_after_the_other(tmp_path):
    plan = """
        format = 1

        [[injection]]
        agent = "solver"
        failure_mode = "FM-2.6"
        when.call = 0
        manipulator.corrupt_number = { by = 10 }
    """
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, run="mine") as proxy:
        clean = ask(proxy.agent_url("solver"))
        with proxy.inject("rate-limit", run="limited") as limited:
            assert os.environ["OPENAI_BASE_URL"] == limited.base_url
            with pytest.raises(urllib.error.HTTPError, match="429"):
                ask(os.environ["OPENAI_BASE_URL"])
        with proxy.inject(plan) as injected:
            changed = ask(injected.agent_url("solver"))
        assert os.environ["OPENAI_BASE_URL"] == proxy.base_url
        with pytest.raises(aegis.AegisError, match="did not start"), proxy.inject("format = 1\n[[injection]]\n"):
            pass
        assert ask(proxy.agent_url("solver")) == clean
    assert "42" in clean and "52" in changed
    assert [len(run.steps) for run in (proxy.run, limited.run, injected.run)] == [2, 1, 1]
    assert injected.name == "mine-2" and injected.run.steps[0].injected[0]["operator"] == "corrupt_number"


@pytest.mark.parametrize(
    "wrong, says", [({"plan": "no-such-plan"}, "no-such-plan"), ({"upstream": "ftp://x"}, "ftp"), ({"options": ["--no-such"]}, "--no-such")]
)
def test_why_it_does_not_start_is_told(tmp_path, wrong, says):
    with pytest.raises(aegis.AegisError, match=says) as told:
        with aegis.Proxy(**{"upstream": "simulator", "log_dir": tmp_path, **wrong}):
            pass
    assert "did not start" in str(told.value) and "OPENAI_BASE_URL" not in os.environ


def test_a_failure_inside_is_the_news(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with aegis.Proxy(upstream="simulator", log_dir=tmp_path) as proxy:
            ask(proxy.base_url)
            1 / 0
    assert proxy.run.sealed


def test_it_is_started_once_and_used_only_then(tmp_path):
    proxy = aegis.Proxy(upstream="simulator", log_dir=tmp_path)
    proxy.end()
    with pytest.raises(aegis.AegisError, match="not started"):
        proxy.url
    with proxy, pytest.raises(aegis.AegisError, match="started already"):
        proxy.start()


def test_a_program_that_ends_leaves_no_proxy_behind(tmp_path):
    import subprocess

    text = f"import aegis; proxy = aegis.Proxy(upstream='simulator', log_dir={str(tmp_path)!r}).start(); print(proxy._child.process.pid)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_where_the_program_is_looked_for(tmp_path, monkeypatch):
    program = tmp_path / "aegis"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert aegis.binary({"AEGIS_BIN": str(program)}) == str(program)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nowhere"))
    assert aegis.binary({"PATH": str(tmp_path)}) == str(program)
    with pytest.raises(aegis.BinaryMissing, match="AEGIS_BIN is"):
        aegis.binary({"AEGIS_BIN": str(tmp_path)})
    with pytest.raises(aegis.BinaryMissing, match="AEGIS_BIN=/path"):
        aegis.binary({"PATH": "/nowhere"})
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert aegis.binary({"PATH": "/nowhere"}) == str(program)


def test_log_probabilities_that_only_the_recorder_asked_for(tmp_path):
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, options=["--ask-logprobs"]) as proxy:
        ask(proxy.base_url)
    (attempt,) = proxy.run.steps[0].attempts
    # The simulator gives none; what it said is kept on its own all the same.
    assert attempt.reply_with_logprobs == attempt.response != b""
    assert proxy.run.verify()
