"""Runs of a server that somebody else keeps."""

import json
import urllib.request

import aegis
import pytest
from conftest import chat

EGGS = chat([{"role": "user", "content": "A box holds 6 eggs. How many eggs do 7 boxes hold?"}])


def ask(base):
    asked = urllib.request.Request(f"{base}/chat/completions", EGGS, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_a_run_is_opened_judged_annotated_kept_and_ended(served):
    proxy, control, token = served
    server = aegis.Server(control, token, proxy=proxy)
    with server.open_run("mine", task="eggs", agents=[{"name": "counter", "first_user_contains": "eggs"}]) as run:
        assert "42" in ask(run.base_url) and "42" in ask(run.agent_url("other"))
        run.judge("failure", evidence="it is late", by="ada")
        assert run.facts["state"] == "open" and run.facts["task"] == "eggs"
    assert run.facts["agents"] == {"counter": 1, "other": 1} and run.facts["outcome"]["verdict"] == "failure"
    assert run.annotate(step=0, why="it counts boxes", by="ada", blind=True)["blind"]
    assert run.annotate()["error"] is None
    assert [one["annotator"] for one in run.annotations] == ["ada", "operator"]
    run.keep()
    assert server.run("mine").facts["kept"]
    run.release()
    assert not run.facts["kept"] and run.end()["state"] == "ended"


def test_what_is_refused_says_why(served):
    proxy, control, token = served
    server = aegis.Server(control, token)
    server.open_run("mine")
    with pytest.raises(aegis.AlreadyRecorded, match="run_exists"):
        server.open_run("mine")
    with pytest.raises(aegis.AegisError, match="invalid_roster.*number 1"):
        server.open_run("other", agents=[{"name": "counter"}])
    with pytest.raises(aegis.AegisError, match="no_such_run"):
        server.run("none").end()
    with pytest.raises(aegis.AegisError, match="where calls go"):
        server.run("mine").base_url
    with pytest.raises(aegis.AegisError, match="no_token"):
        aegis.Server(control, "wrong").run("mine").end()
    with pytest.raises(aegis.AegisError, match="no answer"):
        aegis.Server("http://127.0.0.1:1", token).run("mine").end()
