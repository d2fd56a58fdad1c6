"""The plugin in a real pytest, with the real openai SDK before Aegis' simulator. Needs `aegis` (AEGIS_BIN) and `openai`."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from pytest_aegis import Aegis, AlreadyRecorded, binary

pytest_plugins = ["pytester"]

# openai-python asks twice more after an error, and waits as it is told. The loop does not wait. It counts its tries as the SDK does:
# without that nothing tells them from other calls that ask the same.
ASKS = """
import json, openai, os, pytest, urllib.error, urllib.request

MESSAGES = [{"role": "system", "content": "You solve word problems. End with a line `ANSWER: <number>`."},
            {"role": "user", "content": "A box holds 6 eggs. How many eggs do 7 boxes hold?"}]

def answer(**options):
    said = openai.OpenAI(**options).chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)
    return said.choices[0].message.content

def hasty():
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({"model": "gpt-4o-mini", "messages": MESSAGES}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    for number in range(9):
        headers["x-stainless-retry-count"] = str(number)
        try:
            said = urllib.request.urlopen(urllib.request.Request(url, body, headers))
            return json.load(said)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError:
            pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest in a process of its own, on a file that begins as above."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "AEGIS_UPSTREAM"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\naegis_upstream = simulator\n")

    def run(body, *options):
        pytester.makepyfile(test_it=ASKS + body)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run


def verdict(directory):
    """What the program says of a recorded run."""
    done = subprocess.run([binary(), "show", str(directory), "--verdict", "--format", "json"], capture_output=True, text=True)
    return json.loads(done.stdout)


def test_green(run):
    done = run(
        """
@pytest.mark.aegis(plan="rate-limit", repeats=2)
def test_survives(aegis):
    assert "42" in answer()
    assert aegis.verdict.passed and aegis.verdict.rules() == {"healed"}
    assert [step["call"] for step in aegis.steps] == [0]

@pytest.mark.aegis("slow-service")
class TestClass:
    def test_survives(self, aegis):
        assert "42" in answer(base_url=aegis.base_url)

def test_without_a_plan(aegis):
    assert "42" in answer()
"""
    )
    done.assert_outcomes(passed=4)


def test_red_by_the_verdict_and_red_again(run):
    body = """
@pytest.mark.aegis(plan="rate-limit")
def test_hasty(aegis):
    assert "42" in hasty()
"""
    for _ in range(2):
        done = run(body)
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(["*under rate-limit: failed*", "*call 0*ignored_retry_after: tried again after *"])
        done.stdout.fnmatch_lines(["*aegis show */aegis/test_it.py-test_hasty-rate-limit-1-* --verdict*"])


def test_chance_falls_the_same_way_each_time(run, pytester):
    pytester.makefile(
        ".toml",
        maybe='format = 1\nseed = 7\n[[injection]]\nagent = "*"\nwhen.probability = 0.5\nfault.status = { code = 401 }\n',
    )
    body = """
@pytest.mark.aegis(plan="maybe.toml", repeats=8, judge=False)
def test_maybe(aegis):
    assert "42" in answer()
"""
    drawn = [run(body).parseoutcomes() for _ in range(2)]
    assert drawn[0]["failed"] and drawn[0]["passed"]
    assert {key: drawn[0][key] for key in ("failed", "passed")} == {key: drawn[1][key] for key in ("failed", "passed")}


def test_red_by_its_own_assertion_says_the_verdict_too(run):
    done = run(
        """
@pytest.mark.aegis(plan="slow-service")
def test_wrong(aegis):
    assert "43" in answer()
"""
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*Captured aegis call*", "*under slow-service: *", "*aegis show *"])


def nobody(pytester):
    """Writes a plan that aims at no agent there is."""
    pytester.makefile(
        ".toml",
        nobody='format = 1\nseed = 7\n[[injection]]\nagent = "nobody"\nwhen.call = 0\nfault.status = { code = 500 }\n',
    )


def test_a_plan_that_never_fired_is_no_pass(run, pytester):
    nobody(pytester)
    done = run(
        """
@pytest.mark.aegis(plan="nobody.toml")
def test_it(aegis):
    assert "42" in answer()
"""
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*under *nobody.toml: inconclusive*", "*the plan never fired: status at nobody*"])


# The answers of the simulator call no tool here, and one call is drawn by none of its injections.
NOTHING_FOR_IT = """
@pytest.mark.aegis(plan="no_tools.toml"MARK)
def test_it(aegis):
    assert "42" in answer()
"""


@pytest.fixture
def no_tools(pytester):
    injection = '[[injection]]\nagent = "*"\nwhen.call = 0\nfault.spoil_tool_call = { how = "dropped" }\n'
    pytester.makefile(".toml", no_tools=f"format = 1\nseed = 7\n{injection}")


def test_a_plan_that_does_not_apply_is_a_skip(run, no_tools):
    done = run(NOTHING_FOR_IT.replace("MARK", ""), "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*test_it.py:*under *no_tools.toml: skipped: *the answer makes no tool call*"])


@pytest.mark.parametrize("mark, option", [(", strict=True", ""), ("", "--aegis-strict"), ("", "-oaegis_strict=true")])
def test_a_plan_that_does_not_apply_is_red_where_that_is_asked_for(run, no_tools, mark, option):
    done = run(NOTHING_FOR_IT.replace("MARK", mark), *option.split())
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*under *no_tools.toml: skipped*"])


def test_a_marker_says_more_than_an_option(run, no_tools):
    run(NOTHING_FOR_IT.replace("MARK", ", strict=False"), "--aegis-strict").assert_outcomes(skipped=1)


def test_a_failure_of_its_own_under_a_plan_that_does_not_apply_stays_one(run, no_tools):
    run(NOTHING_FOR_IT.replace("MARK", "").replace('"42"', '"43"')).assert_outcomes(failed=1)


def test_a_test_that_asks_for_the_verdict_itself_is_skipped_too(run, no_tools):
    body = NOTHING_FOR_IT.replace("MARK", ", judge=False") + "    aegis.assert_survived()\n"
    run(body).assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    "mark, option",
    [(", allow=['ignored_retry_after', 'no_backoff']", ""), ("", "--aegis-allow=ignored_retry_after"), ("", "-oaegis_allow=ignored_retry_after")],
)
def test_a_rule_that_is_allowed_makes_nothing_red(run, mark, option):
    body = f"""
@pytest.mark.aegis(plan="rate-limit"{mark})
def test_hasty(aegis):
    assert "42" in hasty()
    assert aegis.verdict.passed and not aegis.verdict.findings and len(aegis.verdict.allowed) == 1
    assert "ignored_retry_after" in aegis.verdict.rules() and "allowed: " in aegis.report()
"""
    run(body, *option.split()).assert_outcomes(passed=1)


def test_a_rule_that_is_allowed_allows_no_other(run):
    body = """
@pytest.mark.aegis(plan="rate-limit", allow="no_backoff")
def test_hasty(aegis):
    assert "42" in hasty()
"""
    done = run(body)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*ignored_retry_after*"])


@pytest.mark.parametrize("mark, option", [(", allow_inconclusive=True", ""), ("", "--aegis-allow-inconclusive")])
def test_where_nothing_is_known_a_skip_may_do(run, pytester, mark, option):
    nobody(pytester)
    body = f"""
@pytest.mark.aegis(plan="nobody.toml"{mark})
def test_it(aegis):
    assert "42" in answer()
"""
    done = run(body, "-rs", *option.split())
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*under *nobody.toml: inconclusive: *the plan never fired: status at nobody*"])


def test_what_is_left_of_a_verdict_when_rules_are_allowed():
    from pytest_aegis import Verdict

    def result(kinds, allow=("no_backoff",)):
        findings = [{"kind": kind, "says": "no_backoff: at once" if kind == "defect" else "why"} for kind in kinds]
        return Verdict({"survival": {"result": "told", "findings": findings}}, allow).result

    assert result(["defect"], allow=()) == result(["program_failed"]) == "told"
    assert result(["defect"]) == "passed"
    assert result(["defect", "never_delivered", "does_not_apply"]) == "inconclusive"
    assert result(["defect", "does_not_apply"]) == "skipped"
    assert result(["defect", "program_failed", "never_delivered"]) == result(["defect", "of_a_later_version"]) == "failed"
    assert result(["defect", "check_broken"]) == "void"


def test_recordings_are_kept_where_they_are_wanted(run, pytester):
    body = """
@pytest.mark.aegis(plan="slow-service")
def test_it(aegis):
    assert "42" in answer()
"""
    run(body, "--aegis-dir=kept").assert_outcomes(passed=1)
    (kept,) = (pytester.path / "kept").iterdir()
    assert (kept / "seal.json").is_file()
    done = run(body, "--aegis-dir=kept")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*is sealed*", "*--aegis-overwrite*"])
    run(body, "--aegis-dir=kept", "--aegis-overwrite").assert_outcomes(passed=1)


def test_plans_of_a_list_and_of_the_command_line(run):
    body = """
@pytest.mark.aegis(plan=["rate-limit", "slow-service"])
def test_both(aegis):
    assert "42" in answer()

def test_said(aegis):
    assert "42" in answer()
    assert aegis.verdict.injections
"""
    done = run(body, "--aegis-plan=slow-service", "-v")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["*test_both?rate-limit-1?*", "*test_both?slow-service-1?*", "*test_said?slow-service-1?*"])


FLAKY = """
import os
from pathlib import Path

def tried():
    count = Path("tries")
    count.write_text(count.read_text() + "x" if count.exists() else "x")
    return len(count.read_text())

@pytest.mark.aegis(plan="rate-limit")
def test_flaky(aegis):
    number = tried()
    assert "42" in (hasty() if number < GOOD else answer())
"""


def names_kept(pytester):
    return sorted(path.name for path in (pytester.path / "kept").iterdir())


def test_a_rerun_has_a_run_of_its_own(run, pytester):
    done = run(FLAKY.replace("GOOD", "2"), "--aegis-dir=kept", "--reruns=2")
    assert done.parseoutcomes() == {"passed": 1, "rerun": 1}
    first, second = names_kept(pytester)
    assert second == f"{first}-try-2"
    results = [verdict(pytester.path / "kept" / name)["survival"]["result"] for name in (first, second)]
    assert results == ["failed", "passed"]


def test_a_defect_in_each_try_is_red(run, pytester):
    done = run(FLAKY.replace("GOOD", "9"), "--aegis-dir=kept", "--reruns=2")
    assert done.parseoutcomes() == {"failed": 1, "rerun": 2}
    done.stdout.fnmatch_lines(["*ignored_retry_after*", "*aegis show *-try-3 --verdict*"])
    assert len(names_kept(pytester)) == 3


def test_reruns_do_not_go_round_a_recording_of_an_earlier_session(run, pytester):
    run(FLAKY.replace("GOOD", "0"), "--aegis-dir=kept").assert_outcomes(passed=1)
    done = run(FLAKY.replace("GOOD", "0"), "--aegis-dir=kept", "--reruns=2")
    assert done.parseoutcomes() == {"errors": 1, "rerun": 2}
    assert len(names_kept(pytester)) == 1


def test_workers_repeats_plans_parameters_and_reruns_together(run, pytester):
    body = """
@pytest.mark.parametrize("seen", ["a", "b"])
@pytest.mark.aegis(plan=["rate-limit", "slow-service"], repeats=2)
def test_all(aegis, seen, request):
    assert "42" in answer()
    assert seen == "a" or aegis.name.endswith("-try-2")
"""
    done = run(body, "--aegis-dir=kept", "--reruns=1", "-n2")
    assert done.parseoutcomes() == {"passed": 8, "rerun": 4}
    names = names_kept(pytester)
    assert len(names) == 12 and sum(name.endswith("-try-2") for name in names) == 4


def test_a_worker_that_dies_is_a_try(run, pytester):
    body = FLAKY.replace("number = tried()", "number = tried()\n    number > 1 or os._exit(1)").replace("GOOD", "0")
    done = run(body, "--aegis-dir=kept", "--reruns=1", "-n1")
    assert done.parseoutcomes() == {"passed": 1, "rerun": 1}
    first, second = names_kept(pytester)
    assert second == f"{first}-try-2"


def test_async_tests_are_judged_too(run):
    done = run(
        """
import asyncio

@pytest.mark.aegis(plan="rate-limit")
@pytest.mark.asyncio
async def test_hasty(aegis):
    assert "42" in await asyncio.to_thread(hasty)
"""
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*ignored_retry_after*"])


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


@pytest.mark.parametrize("said", ["", "/no/such/aegis"])
def test_without_a_program_it_says_what_to_do(run, monkeypatch, said):
    monkeypatch.setenv("AEGIS_BIN", said)
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("def test_it(aegis):\n    pass\n")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*AEGIS_BIN*"] if said else ["*scripts/package*"])


def test_mistakes_in_the_marker_are_told(run):
    for marker, says in [("plna='rate-limit'", "does not take plna"), ("repeats=0", "repeats=0: expected"), ("allow=[1]", "allow=[1]: expected")]:
        done = run(f"@pytest.mark.aegis({marker})\ndef test_it(aegis):\n    pass\n")
        assert done.ret != 0
        assert says in done.stdout.str() + done.stderr.str()


def test_names_of_runs_tell_tests_apart():
    from pytest_aegis.plugin import NAME_MAX, run_name

    names = [run_name(node) for node in ("a.py::t[x-1]", "a.py::t[x-2]", "a.py::t_x_1", "d/" * 60 + "a.py::t", "é" * 300)]
    assert len(set(names)) == len(names) and all(0 < len(name) <= NAME_MAX for name in names)
    assert names == [run_name(node) for node in ("a.py::t[x-1]", "a.py::t[x-2]", "a.py::t_x_1", "d/" * 60 + "a.py::t", "é" * 300)]
    assert os.sep not in "".join(names) and all(name[0].isalnum() for name in names)
