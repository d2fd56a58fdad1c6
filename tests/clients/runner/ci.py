"""`aegis test` in the hands of CI: the pytest plugin in a real pytest with the real SDK, the GitHub action's and the GitLab
template's own lines, the wheel in a fresh environment."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import environments

NAME = "ci"
REPOSITORY = Path(__file__).resolve().parents[3]
TASK = "A box holds 6 eggs. How many eggs do 7 boxes hold?"
# A client that counts its tries as the SDKs do, and does not wait.
HASTY = """
import json, os, urllib.error, urllib.request
body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "TASK"}]}).encode()
for number in range(9):
    headers = {"content-type": "application/json", "x-stainless-retry-count": str(number)}
    try:
        urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers))
        break
    except urllib.error.HTTPError:
        pass
""".replace("TASK", TASK)
GITHUB, GITLAB = "GitHub action", "GitLab template"


@dataclass
class Case:
    """A program under plans, the options that CI is given, and what must come of it."""

    name: str
    plans: str
    results: list
    code: int
    hasty: bool = False
    options: dict = field(default_factory=dict)


# No tool is called by the example, and no call of the one client is drawn by `bad-tools`.
CASES = [
    Case("green", "slow-service", ["passed"], 0),
    Case("red", "rate-limit", ["failed"], 1, hasty=True),
    Case("allowed", "rate-limit", ["passed"], 0, hasty=True, options={"allow": "ignored_retry_after no_backoff"}),
    Case("does not apply", "slow-service bad-tools", ["passed", "skipped"], 0, options={"jobs": "2"}),
    Case("strict", "bad-tools", ["skipped"], 1, options={"strict": "true"}),
    Case("inconclusive", "bad-tools", ["inconclusive"], 1, hasty=True),
    Case("inconclusive allowed", "bad-tools", ["inconclusive"], 0, hasty=True, options={"allow-inconclusive": "true"}),
    Case("void", "rate-limit", ["void"], 3, options={"command": "true"}),
    Case("usage", "no-such-plan", [], 2),
]


def test(root, aegis, cache, report):
    """Run all of it."""
    report.heading(NAME)
    python = environments.python("pytest", cache)
    plugin(python, aegis, report)
    steps = read_steps(python)
    for case in CASES:
        github(steps["github"], case, aegis, report)
        gitlab(steps["gitlab"], case, aegis, report)
    foreign_words(aegis, report)
    artifact(steps["github"], report)
    without_program(steps, aegis, report)
    packed = wheel(python, aegis, report)
    if packed:
        installs(steps, packed, aegis, report)


def plugin(python, aegis, report):
    folder = REPOSITORY / "python" / "pytest-aegis"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    environments.call([*map(str, install), str(folder.parent / "aegis"), str(folder)], "pytest-aegis")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")]
    done = run(command, aegis, {"AEGIS_BIN": aegis.binary})
    report.check("the pytest plugin's own tests pass", done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:])


def read_steps(python):
    """The shell lines of the action and of the template, as their YAML holds them."""
    program = (
        "import json, sys, yaml\n"
        "action, gitlab = (yaml.safe_load(open(path)) for path in sys.argv[1:])\n"
        "print(json.dumps({'github': action, 'gitlab': gitlab['.aegis-test']}))"
    )
    files = [str(REPOSITORY / "action.yml"), str(REPOSITORY / "examples" / "ci" / "gitlab.yml")]
    return json.loads(environments.call([str(python), "-c", program, *files], "reading of the YAML"))


def command(case, aegis, logs):
    """The program of a case, a line for a shell."""
    if not case.hasty:
        return f"'{aegis.binary}' example pipeline --task '{TASK}'"
    program = logs / "hasty.py"
    program.write_text(HASTY)
    return f"'{sys.executable}' '{program}'"


def github(action, case, aegis, report):
    """The action's lines as its runner executes them: inputs with their defaults in the environment, `bash -e -o pipefail`."""
    name = f"{GITHUB}, {case.name}"
    logs = aegis.logs("github")
    inputs = {key: value.get("default", "") for key, value in action["inputs"].items()}
    inputs |= {"plans": case.plans, "command": command(case, aegis, logs), "upstream": "simulator"} | case.options
    inputs["results"] = str(logs / "results")
    variables = {"GITHUB_OUTPUT": str(logs / "output"), "GITHUB_STEP_SUMMARY": str(logs / "summary")}
    variables |= {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(REPOSITORY), "PATH": with_binary(aegis, logs)}
    done = step(action, "test", inputs, aegis, variables)
    report.check(f"{name}: exit code {case.code}", done.returncode == case.code, done.stdout + done.stderr)
    result = "passed" if case.code == 0 else "failed"
    report.equal(f"{name}: its output", (logs / "output").read_text(), f"result={result}\n")
    if case.results:
        report.check(f"{name}: annotations", ("::error " in done.stderr) == (case.code != 0), done.stdout + done.stderr)
        files(name, logs / "results", case.code, report)
    summed = step(action, "summary", inputs, aegis, variables)
    report.check(f"{name}: a summary", summed.returncode == 0 and not summed.stdout, summed.stdout + summed.stderr)
    summary(name, case, (logs / "summary").read_text(), report)


def step(action, name, inputs, aegis, variables):
    """Execute one step of the action."""
    (found,) = (found for found in action["runs"]["steps"] if found["id"] == name)
    of_step = {key: filled(value, inputs) for key, value in found["env"].items()}
    return run(["bash", "-e", "-o", "pipefail", "-c", found["run"]], aegis, of_step | variables)


def summary(name, case, text, report):
    """A row for each run, with its result and what was found."""
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    results = [row[2].split()[-1] for row in rows]
    report.equal(f"{name}: the summary's plans", [row[0] for row in rows], case.plans.split() if case.results else [])
    report.equal(f"{name}: the summary's results", results, case.results)
    explained = [row[3] != "" for row in rows]
    report.equal(f"{name}: what is not passed is explained", explained, [result != "passed" for result in results])
    if not case.results:
        report.check(f"{name}: the summary says that there is no result", "no result" in text, text)
        report.check(f"{name}: and why, in the words of the error", case.name != "usage" or text.strip().count("\n") >= 2, text)


def foreign_words(aegis, report):
    """What a program said is told as words: it makes no markup and no row of its own."""
    logs = aegis.logs("words")
    said = "a | b\n| c | <img src=x> [text](http://x) `d` **e** " + "f" * 400
    found = [{"kind": "program_failed", "says": f"{number}{said}"} for number in (1, 1, 2, 3, 4, 5, 6)]
    one = {"number": 1, "result": "failed", "findings": found, "injections": []}
    told = {"test": "t|", "exit": 1, "result": "r", "plans": [{"plan": "p|", "runs": [one]}]}
    (logs / "result.json").write_text(json.dumps(told))
    text = run([sys.executable, str(REPOSITORY / "examples" / "ci" / "summary.py"), "result.json"], aegis, {}, logs).stdout
    rows = [line for line in text.splitlines() if line.startswith("|")]
    report.equal(f"{GITHUB}: a row a run, whatever was said", [row.count("|") for row in rows], [5, 5, 5])
    report.check(f"{GITHUB}: no markup of a program's", not any(sign in text for sign in ("<img", "](", "**", "`")), text)
    report.check(f"{GITHUB}: long findings are cut, and the rest is counted", "…" in text and "and 1 more" in text, text)


def artifact(action, report):
    """What is uploaded is what the tests of the lines found, by an action that nobody can exchange."""
    (found,) = (found for found in action["runs"]["steps"] if found["id"] == "artifact")
    is_pinned = re.fullmatch("actions/upload-artifact@[0-9a-f]{40}", found["uses"]) is not None
    report.check(f"{GITHUB}: uploads by a pinned commit", is_pinned, found["uses"])
    wanted = [f"${{{{ inputs.results }}}}/{name}" for name in ("junit.xml", "report.html", "result.json")]
    report.equal(f"{GITHUB}: what it uploads", found["with"]["path"].split("\n")[:-1], wanted)
    report.check(f"{GITHUB}: a red test is uploaded too", found["if"].startswith("always()"), found["if"])


def without_program(steps, aegis, report):
    """Where there is no `aegis`, CI says what to do, and looks no name up."""
    logs = aegis.logs("without")
    empty = logs / "empty"
    empty.mkdir()
    for tool in ("bash", "mkdir", "rm", "sh"):
        (empty / tool).symlink_to(shutil.which(tool))
    inputs = {key: value.get("default", "") for key, value in steps["github"]["inputs"].items()} | {"command": "true"}
    report.equal(f"{GITHUB}: installs nothing by itself", inputs["install"], "")
    report.equal(f"{GITHUB}: its plans", inputs["plans"], "faults")
    done = step(steps["github"], "test", inputs, aegis, {"GITHUB_OUTPUT": str(logs / "output"), "PATH": str(empty)})
    report.check(f"{GITHUB}: no program", done.returncode == 2 and "is not on PATH" in done.stdout, done.stdout + done.stderr)
    variables = steps["gitlab"]["variables"]
    report.equal(f"{GITLAB}: installs nothing by itself", variables["AEGIS_INSTALL"], "")
    report.equal(f"{GITLAB}: its plans", variables["AEGIS_PLANS"], "faults")
    done = run(["sh", "-c", "\n".join(["set -e", *steps["gitlab"]["before_script"]])], aegis, variables | {"PATH": str(empty)})
    report.check(f"{GITLAB}: no program", done.returncode == 2 and "is not on PATH" in done.stderr, done.stdout + done.stderr)


def installs(steps, packed, aegis, report):
    """The lines that install: a path, a URL with its hash; nothing else."""
    logs = aegis.logs("installs")
    venv = logs / "venv"
    environments.call([sys.executable, "-m", "venv", str(venv)], "a fresh environment")
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    with served(packed.parent) as url:
        at = f"{url}/{packed.name}"
        kinds = [("a path", str(packed), True), ("a URL with its hash", f"{at}#sha256={digest}", True)]
        kinds += [("a URL with another hash", f"{at}#sha256={'0' * 64}", False), ("a URL without", at, False)]
        kinds += [("a name", "aegis-proxy", False)]
        for kind, install, works in kinds:
            for name in (GITHUB, GITLAB):
                variables = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "PIP_NO_CACHE_DIR": "1"}
                if name == GITHUB:
                    done = step(steps["github"], "install", {"install": install}, aegis, variables)
                else:
                    variables |= steps["gitlab"]["variables"] | {"AEGIS_INSTALL": install, "AEGIS_RESULTS": str(logs / "results")}
                    done = run(["sh", "-c", "\n".join(["set -e", *steps["gitlab"]["before_script"]])], aegis, variables)
                there = (venv / "bin" / "aegis").is_file()
                verb = "installs" if works else "does not install"
                report.check(f"{name}: {verb} {kind}", there == works == (done.returncode == 0), done.stdout + done.stderr)
                if there:
                    environments.call([str(venv / "bin" / "pip"), "uninstall", "--quiet", "--yes", "aegis-proxy"], "removal")


@contextmanager
def served(folder):
    """The files of a folder over HTTP."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def filled(value, inputs):
    for key, put in inputs.items():
        value = value.replace("${{ inputs." + key + " }}", put)
    if "${{" in value:
        raise ValueError(f"`{value}` names what the action has no input for")
    return value


def gitlab(template, case, aegis, report):
    """The template's lines as its runner executes them: one after the other in a shell that ends at the first failure."""
    name = f"{GITLAB}, {case.name}"
    logs = aegis.logs("gitlab")
    options = {"command": command(case, aegis, logs)} | case.options
    variables = template["variables"] | {"AEGIS_PLANS": case.plans, "AEGIS_UPSTREAM": "simulator"}
    variables |= {f"AEGIS_{key.upper().replace('-', '_')}": value for key, value in options.items()}
    variables |= {"AEGIS_RESULTS": str(logs / "results"), "PATH": with_binary(aegis, logs)}
    lines = "\n".join(["set -e", *template["before_script"], *template["script"]])
    done = run(["sh", "-c", lines], aegis, variables)
    report.check(f"{name}: exit code {case.code}", done.returncode == case.code, done.stdout + done.stderr)
    if case.results:
        files(name, logs / "results", case.code, report)


def files(name, results, code, report):
    junit = results / "junit.xml"
    if report.check(f"{name}: a JUnit file", junit.is_file()):
        suite = ElementTree.parse(junit).getroot().find("testsuite")
        red = int(suite.get("failures")) + int(suite.get("errors")) > 0
        report.equal(f"{name}: it is red when the exit code is", red, code != 0)
    report.check(f"{name}: a page", (results / "report.html").is_file())


def with_binary(aegis, folder):
    """A PATH on which `aegis` is the binary that is tested."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "aegis").symlink_to(aegis.binary)
    return f"{binaries}{os.pathsep}{aegis.environment['PATH']}"


def wheel(python, aegis, report):
    """The wheel is packed, installed into a new environment and used there, with nothing else on PATH."""
    out = aegis.logs("wheel")
    packed = run([str(python), str(REPOSITORY / "scripts" / "packaging" / "pack.py"), aegis.binary, str(out)], aegis, {})
    found = list(out.glob("*.whl"))
    if not report.check("the wheel is packed", packed.returncode == 0 and len(found) == 1, packed.stdout + packed.stderr):
        return None
    environments.call([sys.executable, "-m", "venv", str(out / "venv")], "a fresh environment")
    install = [str(out / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", str(found[0])]
    environments.call(install, "the wheel")
    installed = str(out / "venv" / "bin" / "aegis")
    version = run([installed, "--version"], aegis, {}).stdout
    report.equal("the wheel: its version", version, run([aegis.binary, "--version"], aegis, {}).stdout)
    demo = run([installed, "demo", "--dir", str(out / "demo")], aegis, {"PATH": "/usr/bin:/bin"})
    report.check("the wheel: the demo makes its data set", (out / "demo" / "dataset.jsonl").is_file(), demo.stderr[-2000:])
    reads = "import aegis; print(aegis.binary()); print(len(aegis.load_dataset('demo')), len(aegis.corpus('demo/logs')))"
    package = run([str(out / "venv" / "bin" / "python"), "-c", reads], aegis, {"PATH": "/usr/bin:/bin"}, out)
    report.equal("the wheel: its package finds the program and reads", package.stdout, f"{installed}\n28 132\n")
    return found[0]


def run(command, aegis, variables, folder=None):
    return subprocess.run(
        command,
        cwd=folder or aegis.scratch,
        env=aegis.environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
