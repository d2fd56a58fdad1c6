"""The class behind the fixture: without pytest, and in a fixture of one's own. The documentation's examples are executed."""

import json
import os
import re
from pathlib import Path

import pytest
from pytest_aegis import Aegis, AlreadyRecorded

pytest_plugins = ["pytester"]


def documented(about):
    """The example of the documentation that holds these words."""
    page = Path(__file__).parents[3] / "docs" / "ci.md"
    (example,) = (text for text in re.findall("```python\n(.*?)```", page.read_text(), re.DOTALL) if about in text)
    return example


def test_the_class_serves_without_pytest(run, pytester):
    script = pytester.makepyfile(script=documented("OpenAI()"))
    done = pytester.runpython(script)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["passed {'healed'} logs/by-hand"])
    assert (pytester.path / "logs" / "by-hand" / "seal.json").is_file()


def test_the_class_puts_variables_back_and_says_how_a_program_ended(run, pytester, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://before")
    with pytest.raises(ZeroDivisionError):
        with Aegis("ends", upstream="simulator", logs=pytester.path) as aegis:
            assert os.environ["OPENAI_BASE_URL"] == aegis.base_url != "http://before"
            assert "OPENAI_API_KEY" in os.environ
            1 / 0
    assert aegis.ended and os.environ["OPENAI_BASE_URL"] == "http://before" and "OPENAI_API_KEY" not in os.environ
    recorded = json.loads((aegis.directory / "run.json").read_text())
    assert recorded["outcome"]["evidence"] == "command exited with 1"
    with pytest.raises(AlreadyRecorded, match="overwrite=True"):
        Aegis("ends", upstream="simulator", logs=pytester.path)


@pytest.mark.parametrize("client, outcomes", [("answer", {"passed": 2}), ("hasty", {"passed": 2, "errors": 1})])
def test_a_module_may_be_one_run(run, pytester, client, outcomes):
    body = f"""
from pytest_aegis import Aegis
{documented('scope="module"')}
def test_one():
    assert "42" in {client}()

def test_two(provider):
    MESSAGES[1]["content"] = "A box holds 5 eggs. How many eggs do 7 boxes hold?"
    assert "35" in {client}()
"""
    done = run(body)
    assert done.parseoutcomes() == outcomes
    assert [path.name for path in (pytester.path / "logs").iterdir()] == ["orders"]
    if "errors" in outcomes:
        done.stdout.fnmatch_lines(["*ERROR at teardown of test_two*", "*ignored_retry_after*"])


@pytest.mark.parametrize("client, outcomes", [("answer", {"passed": 2}), ("hasty", {"passed": 2, "errors": 1})])
@pytest.mark.parametrize("fixture, name", [("aegis_module", "test_it.py-????????"), ("aegis_session", "session-????????")])
def test_a_fixture_may_be_one_run_for_many_tests(run, pytester, fixture, name, client, outcomes):
    body = f"""
pytestmark = pytest.mark.aegis(plan="rate-limit")

def test_one({fixture}):
    assert "42" in {client}() and os.environ["OPENAI_BASE_URL"] == {fixture}.base_url

def test_two({fixture}):
    MESSAGES[1]["content"] = "A box holds 5 eggs. How many eggs do 7 boxes hold?"
    assert "35" in {client}()
"""
    done = run(body, "--aegis-dir=kept", "--aegis-plan=rate-limit")
    assert done.parseoutcomes() == outcomes
    (kept,) = (pytester.path / "kept").glob(name)
    assert (kept / "seal.json").is_file() and len([*(pytester.path / "kept").iterdir()]) == 1
    if "errors" in outcomes:
        done.stdout.fnmatch_lines(["*ERROR at teardown of test_two*", "*ignored_retry_after*"])


def test_each_worker_has_a_session_of_its_own(run, pytester):
    body = "\ndef test_one(aegis_session):\n    assert '42' in answer()\n\ndef test_two(aegis_session):\n    assert '42' in answer()\n"
    assert run(body, "--aegis-dir=kept", "-n2").parseoutcomes() == {"passed": 2}
    assert 1 <= len([*(pytester.path / "kept").glob("session-gw*")]) <= 2


def test_a_run_of_many_tests_takes_one_plan(run):
    done = run("pytestmark = pytest.mark.aegis(plan=['rate-limit', 'slow-service'])\ndef test_one(aegis_module):\n    pass\n")
    done.stdout.fnmatch_lines(["*aegis_module is one run, and takes one plan*"])
