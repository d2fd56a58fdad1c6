"""The plugin in a real pytest, with the real openai SDK before Aegis' simulator. Needs `aegis` (AEGIS_BIN) and `openai`."""

import os

import pytest

pytest_plugins = ["pytester"]


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
    [
        (", allow=['ignored_retry_after', 'no_backoff']", ""),
        ("", "--aegis-allow=ignored_retry_after"),
        ("", "-oaegis_allow=ignored_retry_after"),
    ],
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


VOTES = """
def votes():
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({"model": "gpt-4o-mini", "messages": MESSAGES}).encode()
    said = []
    for _ in range(3):
        try:
            asked = urllib.request.Request(url, body, {"content-type": "application/json"})
            said.append(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
        except urllib.error.HTTPError:
            pass
    return said
"""


@pytest.mark.parametrize("plan, cases, steps", [('"rate-limit"', 1, 2), ('["rate-limit", None]', 2, 3)])
def test_the_clean_case_of_a_test_tells_equal_calls_from_retries(run, plan, cases, steps):
    done = run(
        f"""{VOTES}
@pytest.mark.aegis(plan={plan})
def test_votes(aegis):
    assert "42" in votes()[-1]
    assert len(aegis.steps) == {steps}
"""
    )
    done.assert_outcomes(passed=cases)


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


@pytest.mark.parametrize("said", ["", "/no/such/aegis"])
def test_without_a_program_it_says_what_to_do(run, monkeypatch, said):
    monkeypatch.setenv("AEGIS_BIN", said)
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("def test_it(aegis):\n    pass\n")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*AEGIS_BIN*"] if said else ["*scripts/package*"])


def test_mistakes_in_the_marker_are_told(run):
    for marker, says in [
        ("plna='rate-limit'", "does not take plna"),
        ("repeats=0", "repeats=0: expected"),
        ("allow=[1]", "allow=[1]: expected"),
    ]:
        done = run(f"@pytest.mark.aegis({marker})\ndef test_it(aegis):\n    pass\n")
        assert done.ret != 0
        assert says in done.stdout.str() + done.stderr.str()


def test_names_of_runs_tell_tests_apart():
    from pytest_aegis.plugin import NAME_MAX, run_name

    names = [run_name(node) for node in ("a.py::t[x-1]", "a.py::t[x-2]", "a.py::t_x_1", "d/" * 60 + "a.py::t", "é" * 300)]
    assert len(set(names)) == len(names) and all(0 < len(name) <= NAME_MAX for name in names)
    assert names == [run_name(node) for node in ("a.py::t[x-1]", "a.py::t[x-2]", "a.py::t_x_1", "d/" * 60 + "a.py::t", "é" * 300)]
    assert os.sep not in "".join(names) and all(name[0].isalnum() for name in names)
