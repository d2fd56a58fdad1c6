"""Programs on the OpenAI SDK behind a balancer, while the server is stopped and started, reloaded, killed and started, and while its
disk is full: none is ended by it, and each call that was answered is in the log once, with its bytes."""

import base64
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from . import debian
from .balancers import FILES, PACKAGES
from .environments import call
from .monitor import until
from .service_files import SECRETS, SERVICE, settings_of
from .slow_upstream import EVENTS, REFUSE, REFUSED_RETRY_AFTER, SlowUpstream, said
from .slurm import free_ports

BALANCERS = ("nginx", "haproxy")
PROGRAMS = 20
USERS = ("alice", "bob")
# Streams here last four seconds at most: a stop may take a sixth of what it may by the shipped files.
SCALE = 6
# `RestartSec` of the unit; and the gap of an upgrade, in which nothing listens.
AT_ONCE_S, GAP_S = 0.1, 2.0
BETWEEN_S = 4.0
# How long the disk takes nothing.
FULL_S = 5.0
# A disk for the logs, in a mount namespace of its own: as long as its holder lives.
DISK = "mkdir -p logs && mount -t tmpfs -o size=40m,mode=700 tmpfs logs && echo mounted && exec sleep infinity"
# What cuts calls that are under way, and what ends that; nothing, where it takes no time.
CUTS = {"killed": None, "full": "room"}
ERRORS = (429, 502, 503, 504)
# What the upstream has given away may still be on its way through the proxy, and what is done to the server comes a moment after it
# is noted.
JUST_PASSED_S = 0.5
ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = ROOT.parents[1]


@dataclass
class Seen:
    """What a leg left for its judge."""

    name: str
    code: int = 0
    said: str = ""
    # When each thing was done to the server, in order; the first is the beginning.
    events: list[tuple[str, float]] = field(default_factory=list)
    stops: list[tuple[int, float, int]] = field(default_factory=list)
    reload: dict = field(default_factory=dict)
    # Whether recordings failed on the full disk, and went on.
    met_full: bool = False
    # What came of the upstream's own errors: status, `Retry-After`, and whether the body was its own.
    refused: list[tuple] = field(default_factory=list)
    # Seconds from a stream's first bytes to its last.
    lasted: float = 0
    answered: dict[str, list[dict]] = field(default_factory=dict)
    arrivals: list = field(default_factory=list)
    recorded: list[dict] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    listed: str = ""


class Leg:
    """One balancer, one server with its upstream, and the programs."""

    def __init__(self, name, aegis, cache, folder, programs, reader):
        self.name, self.aegis, self.cache, self.folder = name, aegis, cache, folder
        self.programs, self.reader = programs, reader
        self.seen = Seen(name)
        self.server = None
        # An older binary, with which the leg begins.
        self.binary = os.environ.get("AEGIS_FORMER") or aegis.binary

    def work(self):
        """Gives what was seen."""
        self.folder.mkdir()
        self.tokens = self.folder / "tokens.toml"
        self.disk = subprocess.Popen(["unshare", "-m", "sh", "-c", DISK], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            return self.on_disk()
        finally:
            self.disk.kill()
            self.disk.wait()

    def on_disk(self):
        if self.disk.stdout.readline() != "mounted\n":
            raise RuntimeError(f"no disk that can be full: it needs to mount, as root does\n{self.disk.stderr.read()}")
        # Its files as they are in there.
        self.logs = Path(f"/proc/{self.disk.pid}/root{self.folder}/logs")
        self.upstream = SlowUpstream()
        self.listen, self.front = free_ports(2)
        shown = {user: self.token(user) for user in (*USERS, "dave")}
        text = (SERVICE / "aegis.toml").read_text()
        (self.folder / "aegis.toml").write_text(re.sub(r"drain_s = (\d+)", lambda found: f"drain_s = {int(found[1]) // SCALE}", text))
        self.start()
        balancer = self.balancer()
        crowd = None
        try:
            if not until(lambda: answers(self.front) and answers(self.listen), 20):
                raise RuntimeError(f"nothing answers within 20 s: {self.log()}")
            self.pass_through(shown["alice"])
            crowd = self.crowd(shown)
            if not until(lambda: len({one.asked for one in self.upstream.arrivals}) >= 2 * PROGRAMS, 30):
                raise RuntimeError("the programs do not come up within 30 s")
            self.scene(shown)
            (self.folder / "end").touch()
            self.seen.code = crowd.wait(timeout=60)
        finally:
            for process in filter(None, (crowd, balancer, self.server)):
                process.terminate()
            for process in filter(None, (crowd, balancer, self.server)):
                process.wait(timeout=30)
            self.upstream.close()
        return self.read()

    def pass_through(self, token):
        """Errors of the upstream pass as they are, streams as they come."""
        for code in ERRORS:
            with contextlib.closing(ask(self.front, token, f"{REFUSE}{code}")) as response:
                own = response.read() == self.upstream.arrivals[-1].reply
                self.seen.refused.append((response.status, response.headers["retry-after"], own))
        with contextlib.closing(ask(self.front, token, "first", stream=True)) as response:
            response.read(1)
            first = time.monotonic()
            response.read()
            self.seen.lasted = time.monotonic() - first

    def scene(self, shown):
        """What is done to the server while the programs work."""
        self.done("begun")
        self.binary = self.aegis.binary
        self.restart(AT_ONCE_S)
        self.reload(shown)
        self.restart(AT_ONCE_S)
        self.full_disk()
        self.restart(GAP_S)
        self.done("killed")
        self.server.kill()
        self.server.wait()
        time.sleep(AT_ONCE_S)
        self.start()
        time.sleep(BETWEEN_S)

    def restart(self, gap):
        """Stopped in order, and started again on the same port and logs."""
        until_busy = until(lambda: self.upstream.under_way >= PROGRAMS // 2, 10)
        self.done("stopped")
        under_way, begun = self.upstream.under_way if until_busy else 0, time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        code = self.server.wait(timeout=60)
        self.seen.stops.append((code, time.monotonic() - begun, under_way))
        time.sleep(gap)
        self.start()
        time.sleep(BETWEEN_S)

    def full_disk(self):
        """The disk takes nothing for a while: another file has all that is left of it."""
        self.done("full")
        other, until_room = self.logs / "other", time.monotonic() + FULL_S
        with other.open("wb", buffering=0) as out:
            while time.monotonic() < until_room:
                try:
                    out.write(bytes(4096))
                except OSError:
                    time.sleep(0.05)
        other.unlink()
        self.done("room")
        time.sleep(BETWEEN_S)
        self.seen.met_full = "there is room again" in self.log()

    def reload(self, shown):
        """A user comes and one goes, by SIGHUP."""
        self.done("reloaded")
        shown["carol"] = self.token("carol")
        entries = self.tokens.read_text().split("[[token]]")
        self.tokens.write_text("[[token]]".join(entry for entry in entries if '"dave"' not in entry))
        known = lambda: {user: status(self.front, shown[user]) for user in ("carol", "dave", *USERS)}
        before = known()
        self.server.send_signal(signal.SIGHUP)
        said = until(lambda: "\nreloaded" in self.log(), 10)
        self.seen.reload = {"before": before, "said": said, "after": known()}

    def done(self, what):
        self.seen.events.append((what, time.monotonic()))

    def token(self, user):
        return call([self.aegis.binary, "token", user, "--file", self.tokens], "aegis token").strip()

    def start(self):
        """The server by the unit's line."""
        unit = settings_of((SERVICE / "aegis.service").read_text())
        line = unit["ExecStart"][0].replace("/etc/aegis", str(self.folder)).replace("/var/lib/aegis", str(self.folder))
        line = line.replace(":8484", f":{self.listen}").replace("127.0.0.1:8485", "127.0.0.1:0")
        inside = ["nsenter", "-t", str(self.disk.pid), "-m", f"--wd={self.folder}"]
        words = [*inside, self.binary, *shlex.split(line)[1:], "--upstream", self.upstream.url]
        with (self.folder / "serve.txt").open("a") as out:
            self.server = subprocess.Popen(words, cwd=self.folder, env=self.aegis.environment | SECRETS, stdout=out, stderr=out)

    def log(self):
        return (self.folder / "serve.txt").read_text()

    def balancer(self):
        """The balancer with its shipped file."""
        root = debian.unpacked(PACKAGES[self.name], self.cache)
        text = (SERVICE / FILES[self.name]).read_text()
        text = re.sub(r"(Retry-After |stopping )30\b", lambda found: f"{found[1]}{30 // SCALE}", text)
        text = re.sub(r"0\.0\.0\.0:\d+", f"127.0.0.1:{self.front}", text).replace("127.0.0.1:8484", f"127.0.0.1:{self.listen}")
        file = self.folder / "balancer.conf"
        if self.name == "haproxy":
            file.write_text(text)
            command = [debian.program(root, "haproxy"), "-db", "-f", file]
        else:
            paths = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            head = f"daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log; events {{ worker_connections 1024; }}\n"
            file.write_text(f"{head}http {{ access_log off;\n{paths}{text}\n}}\n")
            command = [debian.program(root, "nginx"), "-p", self.folder, "-c", file]
        with (self.folder / "balancer.txt").open("w") as out:
            return subprocess.Popen([str(word) for word in command], env=debian.libraries(root) | {"PATH": "/usr/bin:/bin"}, stdout=out, stderr=out)

    def crowd(self, shown):
        """The programs, half of each user's by path and half by header, half under the server's public name."""
        programs = []
        for number in range(PROGRAMS):
            user, run = USERS[number % len(USERS)], f"run-{number:02}"
            self.seen.users[run] = user
            by_path = number % 4 < 2
            base = f"http://127.0.0.1:{self.front}/t/{shown[user]}"
            headers = {} if by_path else {"x-aegis-run": run}
            headers |= {"Host": "aegis.example"} if number % 8 < 4 else {}
            programs.append({"run": run, "base_url": f"{base}/r/{run}/v1" if by_path else f"{base}/v1", "headers": headers})
        (self.folder / "settings.json").write_text(json.dumps({"programs": programs}))
        command = [self.programs, ROOT / "service" / "programs.py", self.folder]
        with (self.folder / "programs.txt").open("w") as out:
            return subprocess.Popen([str(word) for word in command], env=self.aegis.environment, stdout=out, stderr=out)

    def read(self):
        """What programs, upstream and recordings say."""
        seen = self.seen
        seen.arrivals = [one for one in self.upstream.arrivals if one.asked.startswith("run-")]
        seen.answered = {run: [json.loads(line) for line in (self.folder / f"{run}.jsonl").read_text().splitlines()] for run in seen.users}
        command = [str(self.reader), str(ROOT / "service" / "attempts.py"), str(self.logs)]
        variables = self.aegis.environment | {"PYTHONPATH": str(REPOSITORY / "python" / "aegis" / "src")}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
        seen.recorded = [json.loads(line) for line in done.stdout.splitlines()]
        listed = self.aegis.call("runs", "end", *sorted(self.logs.glob("@*/run-*")))
        seen.listed = listed.stderr if listed.code else ""
        seen.said = done.stderr + self.log()[-3000:]
        return seen


def judge(seen, report):
    """What must hold."""
    name = seen.name
    ended = {run: lines[-1]["ended"] for run, lines in seen.answered.items() if lines and "ended" in lines[-1]}
    why = "\n".join(f"{run}: {said.strip().splitlines()[-1]}" for run, said in ended.items())
    report.check(f"{name}: no program is ended by it", seen.code == 0 and not ended, f"exit code {seen.code}\n{why}\n{seen.said}")
    report.equal(f"{name}: each stop is in order", [code for code, _, _ in seen.stops], [0] * len(seen.stops))
    report.check(f"{name}: each stop met streams under way", all(count >= PROGRAMS // 2 for _, _, count in seen.stops), seen.stops)
    report.equal(f"{name}: the upstream's own errors pass as they are", seen.refused, [(code, REFUSED_RETRY_AFTER, True) for code in ERRORS])
    report.check(f"{name}: the full disk stopped recordings, and they go on", seen.met_full, seen.said)
    report.check(f"{name}: streams pass as they come", seen.lasted > 1, seen.lasted)
    yes, no = 200, 401
    wanted = {"before": {"carol": no, "dave": yes, "alice": yes, "bob": yes}, "said": True, "after": {"carol": yes, "dave": no, "alice": yes, "bob": yes}}
    report.equal(f"{name}: a reload takes up one user and turns another away", seen.reload, wanted)
    answered = {line["asked"]: line for lines in seen.answered.values() for line in lines if "asked" in line}
    wrong = [asked for asked, line in answered.items() if line["text"] != said(asked, EVENTS)]
    report.check(f"{name}: {len(answered)} calls were answered, each in full and with its own answer", answered and not wrong, wrong[:5])
    cuts(seen, answered, report)
    retries(seen, answered, report)
    log(seen, answered, report)


def window(seen, at):
    """What was last done to the server at that time, with its number."""
    return max((number, what) for number, (what, begun) in enumerate(seen.events) if begun <= at or number == 0)


def cuts(seen, answered, report):
    """Only a kill and a full disk cut a call: no answer is whole without its record."""
    ends = dict(seen.events)
    spans = [(at, ends.get(CUTS[what], at)) for what, at in seen.events if what in CUTS]
    met = lambda one: any(one.at - JUST_PASSED_S < end and begin < one.ended + JUST_PASSED_S for begin, end in spans)
    cut = [(one.asked, window(seen, one.at)) for one in seen.arrivals if not one.whole and not met(one)]
    report.check(f"{seen.name}: no stop and no reload has cut a call", not cut, cut[:10])
    broken = {line["asked"] for line in answered.values() if line["broken"]}
    others = broken - {one.asked for one in seen.arrivals if met(one)}
    times = [(one.asked, one.at - spans[0][0], one.ended - spans[0][0], one.whole, window(seen, one.at)) for one in seen.arrivals if one.asked in others]
    report.check(f"{seen.name}: streams that broke off were under way at the kill, or when the disk was full", not others, times)


def retries(seen, answered, report):
    """A program and restart cost one call that was asked again, at most."""
    tried = Counter()
    first = {}
    for one in seen.arrivals:
        number = first.setdefault(one.asked, one)
        if one.retries or number is not one:
            tried[one.asked] = max(tried[one.asked], window(seen, one.at)[0])
    by = Counter((asked.split()[0], number) for asked, number in tried.items())
    report.check(f"{seen.name}: one call a program and restart is asked again, at most", all(count == 1 for count in by.values()), by.most_common(5))
    print(f"        {len(tried)} calls of {len(answered)} were asked again; stops took {[round(took, 1) for _, took, _ in seen.stops]} s", flush=True)


def log(seen, answered, report):
    """Each answered call is there once with its bytes; nothing of one run is in another."""
    name = seen.name
    report.check(f"{name}: recordings can be read, and are sealed", seen.recorded and not seen.listed, seen.said + seen.listed)
    known: dict[str, list[dict]] = {}
    mixed = []
    for row in seen.recorded:
        row["request"], row["reply"] = base64.b64decode(row["request"]), base64.b64decode(row["reply"])
        if row["run"] not in seen.users:
            continue
        messages = json.loads(row["request"])["messages"]
        asked = messages[-1]["content"]
        known.setdefault(asked, []).append(row)
        whose = {message["content"].split()[0] for message in messages[1:]}
        if whose != {row["run"]} or row["user"] != seen.users[row["run"]] or row["agent"] not in messages[0]["content"]:
            mixed.append((row["user"], row["run"], row["agent"], messages[0]["content"], asked))
    report.check(f"{name}: no run holds another's calls, no agent another's", not mixed, mixed[:5])
    said_by = {}
    for one in seen.arrivals:
        said_by.setdefault(one.asked, []).append(one)
    lost, twice, other = [], [], []
    for asked in answered:
        whole = [row for row in known.get(asked, []) if row["cause"] == "complete" and row["status"] == 200]
        if not whole:
            lost.append(asked)
        # Where the kill came between record and client, the answer that nobody got is there, too.
        if len(whole) > len([one for one in said_by[asked] if one.whole]) or (len(said_by[asked]) == 1 and len(whole) != 1):
            twice.append(asked)
        pairs = [(one.request, one.reply) for one in said_by[asked]]
        if any((row["request"], row["reply"]) not in pairs or not row["exact"] for row in whole):
            other.append(asked)
    report.check(f"{name}: no answered call is lost", not lost, lost[:10])
    report.check(f"{name}: none is there twice", not twice, [(asked, [row["cause"] for row in known.get(asked, [])]) for asked in twice[:10]])
    report.check(f"{name}: each has the bytes that passed", not other, other[:10])
    steps = Counter((row["run"], row["step"]) for row in seen.recorded if row["cause"] == "complete" and row["run"] in seen.users)
    report.check(f"{name}: each step was answered once", set(steps.values()) == {1}, steps.most_common(3))
    strangers = [asked for asked in known if asked not in said_by]
    report.check(f"{name}: nothing is there that the upstream was not asked", not strangers, strangers[:5])


def ask(port, token, words, **more):
    """The response to one call, an error's too."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": words}]} | more).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/t/{token}/r/known/v1/chat/completions", body, {"content-type": "application/json"})
    try:
        return urllib.request.urlopen(request, timeout=20)
    except urllib.error.HTTPError as error:
        return error


def status(port, token):
    with contextlib.closing(ask(port, token, "known?")) as response:
        return response.status


def answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2)
    except urllib.error.HTTPError:
        return False
    except OSError:
        return False
    return True
