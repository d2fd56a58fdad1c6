"""Tests that are tried again, by pytest-rerunfailures; on workers too, by pytest-xdist."""

import json
import subprocess

from pytest_aegis import binary

pytest_plugins = ["pytester"]

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


def verdict(directory):
    """What the program says of a recorded run."""
    done = subprocess.run([binary(), "show", str(directory), "--verdict", "--format", "json"], capture_output=True, text=True)
    return json.loads(done.stdout)


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
