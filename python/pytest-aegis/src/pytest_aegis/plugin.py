"""The plugin: the marker `aegis`, the fixture `aegis`, and the options that set their defaults."""

import hashlib
import re
import unittest
from pathlib import Path

import pytest

from . import Aegis, AegisError, AlreadyRecorded

# Longest name of a run, in characters.
NAME_MAX = 64
MARKER = (
    "aegis(plan, repeats=1, upstream=None, seed=None, judge=True, allow=(), allow_inconclusive=False, strict=False): record the "
    "test's model calls through Aegis, under a plan (a file, a ready-made one's name, or a list of them), each so many times; "
    "judge=False leaves the verdict to the test; allow names rules of which a finding is no defect"
)
TRIES = pytest.StashKey()
# Where the clean case of a test is recorded, by the test.
BASELINES = pytest.StashKey()
OPTIONS = {"plan", "repeats", "upstream", "seed", "judge", "allow", "allow_inconclusive", "strict"}
# Switches of the command line and of the ini file; a marker may say otherwise.
SWITCHES = {
    "strict": "a plan that does not apply to a test fails it, instead of skipping it",
    "allow_inconclusive": "a test whose plan never fired is skipped, instead of failed",
}


def pytest_addoption(parser):
    group = parser.getgroup("aegis", "model calls through Aegis")
    for name, takes, about in [
        ("upstream", "URL", "where the tests' model calls go: a URL, or `simulator` (scripted; no key, no network)"),
        ("plan", "PLAN", "plan of tests whose marker names none"),
        ("dir", "DIR", "where recordings go; pytest's temporary directory of the session if none"),
        ("config", "FILE", "aegis.toml"),
    ]:
        group.addoption(f"--aegis-{name}", metavar=takes, default=None, help=about)
        parser.addini(f"aegis_{name}", about)
    for name, about in SWITCHES.items():
        group.addoption(f"--aegis-{name.replace('_', '-')}", action="store_true", help=about)
        parser.addini(f"aegis_{name}", about, type="bool", default=False)
    about = "a rule of which a finding is no defect, for example `no_backoff`; repeatable, and added to what markers say"
    group.addoption("--aegis-allow", metavar="RULE", action="append", default=[], help=about)
    parser.addini("aegis_allow", about, type="args", default=[])
    group.addoption("--aegis-overwrite", action="store_true", help="replace recordings of these tests in --aegis-dir")


def pytest_configure(config):
    config.addinivalue_line("markers", MARKER)


def said(config, name):
    """An option of the command line, else of the ini file; None if neither says it."""
    return config.getoption(f"aegis_{name}") or config.getini(f"aegis_{name}") or None


def marked(node):
    """What the nearest marker says, as a dict."""
    marker = node.get_closest_marker("aegis")
    if marker is None:
        return {}
    told = dict(marker.kwargs)
    if marker.args:
        told.setdefault("plan", marker.args[0])
    unknown = set(told) - OPTIONS
    if len(marker.args) > 1 or unknown:
        what = ", ".join(sorted(unknown)) or "two plain arguments"
        raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.aegis does not take {what}; it is {MARKER}")
    allow = told.get("allow", ())
    told["allow"] = [allow] if isinstance(allow, str) else allow
    if not isinstance(told["allow"], (list, tuple, set)) or not all(isinstance(rule, str) for rule in told["allow"]):
        raise pytest.UsageError(f"{node.nodeid}: allow={allow!r}: expected names of rules, for example allow=['no_backoff']")
    return told


def pytest_generate_tests(metafunc):
    """Each plan and each repeat is a test of its own."""
    if "aegis" not in metafunc.fixturenames:
        return
    told = marked(metafunc.definition)
    plan = told.get("plan", said(metafunc.config, "plan"))
    # The clean case first: the others are judged beside it.
    plans = sorted(plan, key=lambda plan: plan is not None) if isinstance(plan, (list, tuple)) else [plan]
    repeats = told.get("repeats", 1)
    if not isinstance(repeats, int) or repeats < 1:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: repeats={repeats!r}: expected a whole number from 1")
    cases = [(plan, number) for plan in plans for number in range(1, repeats + 1)]
    names = [f"{Path(str(plan)).stem if plan else 'clean'}-{number}" for plan, number in cases]
    metafunc.parametrize("aegis", cases, ids=names, indirect=True)


def run_name(nodeid, number=1):
    """A run's name for a try of a test: always the same, so that its draws are, and never another test's."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", nodeid).strip("-._")
    # No name of a first try ends so: it ends with a digest.
    end = f"-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}" + (f"-try-{number}" if number > 1 else "")
    kept = plain[-(NAME_MAX - len(end)) :].lstrip("-._")
    return f"{kept or 'test'}{end}"


class Tries:
    """How often a test was begun: plugins that try a failed test again execute the same item once more."""

    begun = 0
    # Tries that ended before their run began, since a recording of an earlier session lies there: trying again is no way round it.
    refused = 0

    def number(self, node):
        """The number of the try that begins. pytest-rerunfailures also knows of those of a worker that died."""
        return max(self.begun + 1, getattr(node, "execution_count", 1) - self.refused)


def test_of(node):
    """A test, whatever its plan: its function and what else it is given."""
    others = {name: value for name, value in node.callspec.params.items() if name != "aegis"} if hasattr(node, "callspec") else {}
    return f"{node.parent.nodeid} {getattr(node, 'originalname', node.name)} {others!r}"


def begun(config, told, name, plan, path, tmp_path_factory, baseline=None):
    """A run under the options of a marker, of the command line and of the ini file."""
    directory = said(config, "dir")
    # A plan may be a file beside the test.
    beside = path.parent / str(plan) if plan and path else None
    return Aegis(
        name,
        logs=Path(directory) if directory else tmp_path_factory.getbasetemp() / "aegis",
        plan=beside if beside and beside.is_file() else plan,
        upstream=told.get("upstream", said(config, "upstream")),
        config=said(config, "config"),
        seed=told.get("seed"),
        overwrite=config.getoption("aegis_overwrite"),
        baseline=baseline if plan else None,
        allow=[*told.get("allow", ()), *config.getoption("aegis_allow"), *config.getini("aegis_allow")],
        **{name: bool(told.get(name, said(config, name))) for name in SWITCHES},
    )


@pytest.fixture
def aegis(request, monkeypatch, tmp_path_factory):
    """A proxy before the test's model. `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` and their like point at it."""
    told = marked(request.node)
    plan, _ = getattr(request, "param", (told.get("plan"), 1))
    tries = request.node.stash.setdefault(TRIES, Tries())
    name = run_name(request.node.nodeid, tries.number(request.node))
    try:
        baseline = request.config.stash.get(BASELINES, {}).get(test_of(request.node))
        recorded = begun(request.config, told, name, plan, request.path, tmp_path_factory, baseline)
        tries.begun += 1
    except AlreadyRecorded as error:
        tries.refused += 1
        pytest.fail(str(error), pytrace=False)
    except AegisError as error:
        pytest.fail(str(error), pytrace=False)
    for name, value in recorded.environment.items():
        monkeypatch.setenv(name, value)
    yield recorded
    recorded.end()


@pytest.fixture(scope="module")
def aegis_module(request, tmp_path_factory):
    """One run for all tests of a module; judged at its end. Options come from the module's `pytestmark`, else as for `aegis`."""
    yield from wide(request, request.node.nodeid, tmp_path_factory)


@pytest.fixture(scope="session")
def aegis_session(request, tmp_path_factory):
    """One run for the whole session, for each worker of pytest-xdist; judged at its end."""
    worker = getattr(request.config, "workerinput", {}).get("workerid")
    yield from wide(request, f"session-{worker}" if worker else "session", tmp_path_factory)


def wide(request, name, tmp_path_factory):
    """A run around several tests. A defect is an error at the end of the last one."""
    told = marked(request.node) if hasattr(request.node, "own_markers") else {}
    plan = told.get("plan", said(request.config, "plan"))
    if isinstance(plan, (list, tuple)):
        raise pytest.UsageError(f"{request.node.nodeid}: {request.fixturename} is one run, and takes one plan")
    try:
        recorded = begun(request.config, told, run_name(name), plan, getattr(request, "path", None), tmp_path_factory)
    except AegisError as error:
        pytest.fail(str(error), pytrace=False)
    with recorded:
        yield recorded
    if told.get("judge", True):
        try:
            recorded.assert_survived()
        except unittest.SkipTest:
            # The tests are over: there is none to skip.
            pass
        except AssertionError as error:
            pytest.fail(str(error), pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test that passed by itself is judged; one that did not ends its run as a program that crashed."""
    outcome = yield
    recorded = pyfuncitem.funcargs.get("aegis")
    if not isinstance(recorded, Aegis):
        return
    if outcome.excinfo is not None:
        skipped = issubclass(outcome.excinfo[0], (pytest.skip.Exception, unittest.SkipTest))
        recorded.end(0 if skipped else 1)
        if not skipped:
            pyfuncitem.add_report_section("call", "aegis", recorded.report())
        return
    if recorded.plan is None:
        pyfuncitem.config.stash.setdefault(BASELINES, {})[test_of(pyfuncitem)] = recorded.directory
    if marked(pyfuncitem).get("judge", True):
        try:
            recorded.assert_survived()
        except unittest.SkipTest as reason:
            skip = pytest.skip.Exception(str(reason))
            # The test's line is told, and not this one.
            skip._use_item_location = True
            outcome.force_exception(skip)
        except AssertionError as error:
            # A line of the plugin's own tells nobody anything.
            outcome.force_exception(pytest.fail.Exception(str(error), pytrace=False))
