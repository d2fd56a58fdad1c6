"""`aegis test` in the hands of CI: the pytest plugin in a real pytest with the real SDK, the GitHub action's and the GitLab
template's own lines, the wheel in a fresh environment."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from . import environments

NAME = "ci"
REPOSITORY = Path(__file__).resolve().parents[3]
TASK = "A box holds 6 eggs. How many eggs do 7 boxes hold?"
# The example's client gives up where a stream breaks off, and the program with it.
GREEN, RED = "slow-service", "broken-stream"


def test(root, aegis, cache, report):
    """Run all of it."""
    report.heading(NAME)
    python = environments.python("pytest", cache)
    plugin(python, aegis, report)
    steps = read_steps(python)
    for plan, code in [(GREEN, 0), (RED, 1)]:
        github(steps["github"], plan, code, aegis, report)
        gitlab(steps["gitlab"], plan, code, aegis, report)
    wheel(python, aegis, report)


def plugin(python, aegis, report):
    folder = REPOSITORY / "python" / "pytest-aegis"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    environments.call([*map(str, install), str(folder)], "pytest-aegis")
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


def github(action, plan, code, aegis, report):
    """The action's last step as its runner executes it: inputs with their defaults in the environment, `bash -e -o pipefail`."""
    name = f"GitHub action under {plan}"
    logs = aegis.logs("github")
    inputs = {key: value.get("default", "") for key, value in action["inputs"].items()}
    inputs |= {"plans": plan, "command": f"'{aegis.binary}' example pipeline --task '{TASK}'", "upstream": "simulator"}
    inputs["results"] = str(logs / "results")
    step = action["runs"]["steps"][-1]
    variables = {key: filled(value, inputs) for key, value in step["env"].items()}
    variables |= {"GITHUB_OUTPUT": str(logs / "output"), "GITHUB_ACTIONS": "true", "PATH": with_binary(aegis, logs)}
    done = run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], aegis, variables)
    report.equal(f"{name}: the exit code", done.returncode, code)
    result = "passed" if code == 0 else "failed"
    report.equal(f"{name}: its output", (logs / "output").read_text(), f"result={result}\n")
    report.check(f"{name}: annotations", ("::error " in done.stdout) == (code != 0), done.stdout + done.stderr)
    files(name, logs / "results", code, report)


def filled(value, inputs):
    for key, put in inputs.items():
        value = value.replace("${{ inputs." + key + " }}", put)
    if "${{" in value:
        raise ValueError(f"`{value}` names what the action has no input for")
    return value


def gitlab(template, plan, code, aegis, report):
    """The template's lines as its runner executes them: one after the other in a shell that ends at the first failure."""
    name = f"GitLab template under {plan}"
    logs = aegis.logs("gitlab")
    variables = template["variables"] | {"AEGIS_PLANS": plan, "AEGIS_INSTALL": "", "AEGIS_UPSTREAM": "simulator"}
    variables |= {"AEGIS_COMMAND": f"'{aegis.binary}' example pipeline --task '{TASK}'"}
    variables |= {"AEGIS_RESULTS": str(logs / "results"), "PATH": with_binary(aegis, logs)}
    lines = "\n".join(["set -e", *template["before_script"], *template["script"]])
    done = run(["sh", "-c", lines], aegis, variables)
    report.check(f"{name}: exit code {code}", done.returncode == code, done.stdout + done.stderr)
    files(name, logs / "results", code, report)


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
        return
    environments.call([sys.executable, "-m", "venv", str(out / "venv")], "a fresh environment")
    install = [str(out / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", str(found[0])]
    environments.call(install, "the wheel")
    installed = str(out / "venv" / "bin" / "aegis")
    version = run([installed, "--version"], aegis, {}).stdout
    report.equal("the wheel: its version", version, run([aegis.binary, "--version"], aegis, {}).stdout)
    demo = run([installed, "demo", "--dir", str(out / "demo")], aegis, {"PATH": "/usr/bin:/bin"})
    report.check("the wheel: the demo makes its data set", (out / "demo" / "dataset.jsonl").is_file(), demo.stderr[-2000:])


def run(command, aegis, variables):
    return subprocess.run(
        command,
        cwd=aegis.scratch,
        env=aegis.environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
