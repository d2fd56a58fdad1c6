"""The files of examples/service: valid by systemd, nginx, haproxy and the schemas of compose files and Kubernetes; and each
command line in them starts the server, is asked as the file says, reloads and stops."""

import contextlib
import json
import re
import shlex
import subprocess
import time
import tomllib
import urllib.request
from pathlib import Path

from . import debian, disks
from .balancers import PACKAGES
from .environments import call
from .monitor import installed, until
from .slurm import free_ports

SHIPPED = Path(__file__).resolve().parents[3] / "examples"
SERVICE = SHIPPED / "service"
SECRETS = {"OPENAI_API_KEY": "none", "AEGIS_CONTROL_TOKEN": "open-sesame"}
# What the worst-rated service may have, of 10: systemd calls more than 2 a medium exposure.
EXPOSURE = 20
CLOSE_S = 10


def test(root, aegis, cache, reader, folder, report):
    unit = settings_of((SERVICE / "aegis.service").read_text())
    compose, manifests = files_with_schemas(root, reader, folder, report)
    drain = tomllib.loads((SERVICE / "aegis.toml").read_text())["limits"]["drain_s"]
    systemd(aegis, folder, report)
    for name in ("nginx", "haproxy"):
        balancer(name, cache, folder, report)
    server = compose["services"]["aegis"]
    image = SERVICE / server["build"]["context"] / server["build"]["dockerfile"]
    pod = manifests[0]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    users = re.findall(r"^USER (\d+)", image.read_text(), re.MULTILINE)
    report.equal("compose and kubernetes: the user is the image's", [str(pod["securityContext"]["runAsUser"])], users)
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    stops = {
        "systemd": int(unit["TimeoutStopSec"][0]),
        "compose": int(server["stop_grace_period"].rstrip("s")),
        "kubernetes": pod["terminationGracePeriodSeconds"] - before,
    }
    report.equal("each waits for the drain, and ten seconds more", stops, dict.fromkeys(stops, drain + CLOSE_S))
    waits = {name: retry_after((SERVICE / name).read_text()) for name in ("nginx.conf", "haproxy.cfg")}
    report.equal("two waits of an SDK at a stopping server are as long as the drain", waits, dict.fromkeys(waits, drain // 2))
    words = shlex.split(unit["ExecStart"][0])
    with started("systemd", words[1:], {}, aegis, folder, report, traced(cache, folder)) as it:
        reload = unit["ExecReload"][0].replace("$MAINPID", str(it.process.pid))
        subprocess.run(shlex.split(reload), check=True)
        report.check("systemd: its reload reads the tokens again", until(lambda: "reloaded" in it.said(), 10), it.said())
    sandbox(unit, folder / "systemd" / "trace", report)
    with started("compose", server["command"], server["environment"], aegis, folder, report) as it:
        probe = [word.replace("$$", "$").replace("/8484", f"/{it.ports['8484']}") for word in server["healthcheck"]["test"][1:]]
        report.equal("compose: the check of health says yes", subprocess.run(probe, capture_output=True).returncode, 0)
    report.check("compose: and no when nothing is there", subprocess.run(probe, capture_output=True).returncode != 0)
    literal = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    secret = {entry["name"] for entry in container["env"] if "valueFrom" in entry}
    report.equal("kubernetes: the secrets that are named", secret, set(SECRETS))
    with started("kubernetes", container["args"], literal, aegis, folder, report) as it:
        named = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        for kind in ("livenessProbe", "readinessProbe"):
            asked = container[kind]["httpGet"]
            report.equal(f"kubernetes: {kind}", it.status(it.ports[named[asked["port"]]], asked["path"]), 200)


def files_with_schemas(root, reader, folder, report):
    """The compose file and the objects of the manifest, read, and valid by their schemas."""
    file = SERVICE / "compose.yaml"
    done = run([reader.parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file])
    report.check("compose: valid by the schema of the specification", done.returncode == 0, done.stdout + done.stderr)
    spoilt = folder / "compose.yaml"
    spoilt.write_text(file.read_text().replace("stop_grace_period", "stop_grace"))
    done = run([reader.parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", spoilt])
    report.check("compose: and a slip is seen", done.returncode == 1 and "'stop_grace'" in done.stdout, done.stdout + done.stderr)
    compose = json.loads(call([reader, root / "service" / "parsed.py", file], "compose.yaml"))[0]
    done = run([reader, root / "service" / "parsed.py", SERVICE / "kubernetes.yaml", "--kubernetes"])
    report.check("kubernetes: valid by the schemas of 1.33 and 1.36, strictly, and a slip is seen", done.returncode == 0, done.stdout + done.stderr)
    return compose, json.loads(done.stdout)


def systemd(aegis, folder, report):
    """`systemd-analyze verify` and `security`, with the binary in the place of what is not installed here."""
    installed("systemd", report, "systemd-analyze")
    file = folder / "aegis.service"
    text = (SERVICE / "aegis.service").read_text()
    file.write_text(text.replace("/usr/local/bin/aegis", aegis.binary))
    done = run(["systemd-analyze", "verify", "--man=no", file])
    report.check("systemd: the unit is valid, without a word", done.returncode == 0 and not done.stderr.strip(), done.stdout + done.stderr)
    spoilt = folder / "spoilt.service"
    spoilt.write_text(file.read_text().replace("TimeoutStopSec", "TimeoutStop"))
    done = run(["systemd-analyze", "verify", "--man=no", spoilt])
    report.check("systemd: and a slip is seen", "TimeoutStop" in done.stderr, done.stdout + done.stderr)
    done = run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", file])
    report.check("systemd: it is closed but for what it needs", done.returncode == 0, done.stdout[-300:] + done.stderr)


def balancer(name, cache, folder, report):
    """nginx and haproxy take their files, those of examples/balancers too."""
    root = debian.unpacked(PACKAGES[name], cache)
    environment = debian.libraries(root) | {"PATH": "/usr/bin:/bin"}
    for source in (SERVICE, SHIPPED / "balancers"):
        text = (source / {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[name]).read_text()
        file = folder / f"{source.name}-{name}.conf"
        if name == "haproxy":
            file.write_text(text)
            command = [debian.program(root, name), "-c", "-f", file]
        else:
            # Unpacked, not installed: the folders of its package are not there.
            paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            file.write_text(f"pid {folder}/pid; error_log {folder}/error.log; events {{}}\nhttp {{\naccess_log off;\n{paths}{text}\n}}\n")
            command = [debian.program(root, name), "-t", "-p", folder, "-c", file]
        done = run(command, env=environment)
        worried = re.findall(r".*(?:WARNING|\[warn\]).*", done.stdout + done.stderr)
        report.check(f"{name}: it takes the file of examples/{source.name}", done.returncode == 0 and not worried, done.stdout + done.stderr)


class Started:
    """A server that one of the files started."""

    def __init__(self, process, ports, log):
        self.process, self.ports, self.log = process, ports, log

    def said(self):
        return self.log.read_text()

    def status(self, port, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None


@contextlib.contextmanager
def started(name, words, variables, aegis, folder, report, before=()):
    """The server by the words of a file: its paths and ports are others here, its upstream is the simulator. It is asked, and
    ended by SIGTERM."""
    place = folder / name
    token, words, ports, variables = laid_out(place, words, variables, aegis)
    log = place / "said.txt"
    environment = aegis.environment | SECRETS | variables
    with log.open("w") as out:
        process = subprocess.Popen([*before, aegis.binary, *words, "--upstream", "simulator"], env=environment, stdout=out, stderr=out, cwd=place)
        it = Started(process, ports, log)
        try:
            up = until(lambda: it.status(ports["8484"], "/healthz") == 200 or process.poll() is not None, 20)
            report.check(f"{name}: its command starts the server", up and process.poll() is None, it.said())
            report.equal(f"{name}: a call with a token", asked(ports["8484"], token), 200)
            # Large bodies have threads of their own, which ask the system for more.
            report.equal(f"{name}: a call with a large body", asked(ports["8484"], token, "hello " * 200_000), 200)
            report.equal(f"{name}: a call without", asked(ports["8484"], "none"), 401)
            request = urllib.request.Request(f"http://127.0.0.1:{ports['8485']}/metrics", headers={"authorization": f"Bearer {SECRETS['AEGIS_CONTROL_TOKEN']}"})
            counted = urllib.request.urlopen(request, timeout=5).read().decode()
            report.check(f"{name}: the control listener knows its token", "aegis_runs_open 1" in counted, counted[:2000])
            yield it
        finally:
            process.terminate()
            code = process.wait(timeout=30)
    report.equal(f"{name}: SIGTERM ends it in order", code, 0)
    held = list((place / "state" / "logs" / "@alice").glob("*/run.json"))
    report.equal(f"{name}: the call lies where the file says", len(held), 1)


def laid_out(place, words, variables, aegis):
    """The folders of a file in a place of the test: a token, and words, ports and variables with what they became."""
    settings, state = place / "settings", place / "state"
    for made in (settings, state):
        made.mkdir(parents=True)
    (settings / "aegis.toml").write_text((SERVICE / "aegis.toml").read_text())
    token = call([aegis.binary, "token", "alice", "--file", settings / "tokens.toml"], "aegis token").strip()
    ports = dict(zip(("8484", "8485"), map(str, free_ports(2))))
    others = {"/etc/aegis-secret": str(settings), "/etc/aegis": str(settings), "/var/lib/aegis": str(state)}
    others |= {f":{port}": f":{free}" for port, free in ports.items()}

    def here(text):
        for shipped, other in others.items():
            text = text.replace(shipped, other)
        return text

    return token, [here(word) for word in words], ports, {key: here(value) for key, value in variables.items()}


def asked(port, token, words="hello"):
    body = json.dumps({"model": "sim", "messages": [{"role": "user", "content": words}]}).encode()
    headers = {"content-type": "application/json", "host": "aegis.example"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/t/{token}/r/first/v1/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def traced(cache, folder):
    """What goes before a command whose system calls are written down; the command stays our child."""
    root = debian.unpacked(disks.STRACE, cache)
    variables = [f"{key}={value}" for key, value in debian.libraries(root).items()]
    return ["env", *variables, debian.program(root, "strace"), "-D", "-f", "-qq", "-s", "0", "-o", str(folder / "systemd" / "trace")]


def sandbox(unit, trace, report):
    """What the server did is what the unit lets it do: there is no systemd here that would stop it."""
    text = ""
    end = time.monotonic() + 10
    while "+++ exited with" not in text[-200:] and time.monotonic() < end:
        time.sleep(0.1)
        text = trace.read_text()
    used = set(re.findall(r"^\d+ +(\w+)\(", text, re.MULTILINE))
    refused = set(re.findall(r"^\d+ +(\w+)\(.*= -1 EPERM", text, re.MULTILINE))
    allowed: set[str] = set()
    for line in unit["SystemCallFilter"]:
        named = {call for group in line.lstrip("~").split() for call in calls_of(group)}
        allowed = allowed - named if line.startswith("~") else allowed | named
    report.check("systemd: it makes no system call that the unit refuses", used and used <= allowed, sorted(used - allowed - refused))
    families = set(re.findall(r"socket\((AF_\w+)", text))
    report.check("systemd: it opens no socket of another family", families and families <= set(unit["RestrictAddressFamilies"][0].split()), families)
    report.check("systemd: it makes no memory that is written and executed", "PROT_WRITE|PROT_EXEC" not in text, "")


def calls_of(group):
    """The system calls of a set of systemd's, sets in it resolved."""
    if not group.startswith("@"):
        return {group}
    listed = run(["systemd-analyze", "syscall-filter", "--no-pager", group]).stdout.splitlines()[1:]
    words = [line.strip() for line in listed if line.strip() and not line.strip().startswith("#")]
    return {call for word in words for call in calls_of(word)}


def retry_after(text):
    """The seconds that a balancer's file says for a server that is stopping."""
    found = re.search(r"Retry-After (\d+) if .*stopping|^\s*stopping (\d+);", text, re.MULTILINE)
    return int(found[1] or found[2])


def settings_of(text):
    """The settings of a unit, each with its values."""
    settings: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings.setdefault(key, []).append(value)
    return settings


def run(command, env=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env, timeout=60)
