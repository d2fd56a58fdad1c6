"""Two proxies behind haproxy and behind nginx, with the configurations of examples/balancers: 200 runs, one proxy killed; and what
both count for Prometheus, added up."""

import http.client
import json
import re
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

from . import debian
from .aegis import listening
from .slurm import free_ports

ALL = ("haproxy", "nginx")
PACKAGES = {
    "haproxy": ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libpcre2-8-0"],
    "nginx": ["nginx", "nginx-common", "libpcre2-8-0"],
}
RUNS, CALLS, CLIENTS = 200, 3, 8
# Half of the calls are made, all is quiet and looked at; so many calls later one proxy is killed.
LOOK = RUNS * CALLS // 2
KILL = LOOK + 30
TOKEN = "open-sesame"
SHIPPED = Path(__file__).resolve().parents[3] / "examples" / "balancers"
FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}


def test(aegis, cache, folder, name, report):
    place = folder / name
    place.mkdir()
    instances = [instance(aegis, place / "logs" / side) for side in ("a", "b")]
    port = free_ports(1)[0]
    processes = [process for process, _, _ in instances]
    balancer = start(name, cache, place, port, [address for _, address, _ in instances])
    try:
        first = wait(port)
        unnamed(port, name, report)
        crowd = Crowd(port, processes[0], [control for _, _, control in instances])
        seen = crowd.work()
        survivor = metrics(instances[1][2])
    finally:
        for process in (balancer, *processes):
            process.terminate()
        for process in (balancer, *processes):
            process.wait(timeout=20)
    added_up(name, first, crowd, report)
    judge(aegis, place, name, seen, survivor, report)


def instance(aegis, logs):
    """One of two proxies."""
    logs.mkdir(parents=True)
    log = open(logs.parent / f"{logs.name}.stderr", "w+")
    control = free_ports(1)[0]
    command = [aegis.binary, "serve", "--upstream", "simulator", "--listen", "127.0.0.1:0", "--log-dir", str(logs)]
    command += ["--control", f"127.0.0.1:{control}"]
    environment = aegis.environment | {"AEGIS_INSTANCES": "2", "AEGIS_CONTROL_TOKEN": TOKEN}
    process = subprocess.Popen(command, cwd=logs, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
    return process, listening(process, log), control


def start(name, cache, place, port, addresses):
    """The balancer, by the configuration that is shipped."""
    text = (SHIPPED / FILES[name]).read_text()
    for side, address in zip(("10.0.0.1", "10.0.0.2"), addresses):
        text = text.replace(f"{side}:8484", address)
    text = text.replace("0.0.0.0:80", f"127.0.0.1:{port}")
    root = debian.unpacked(PACKAGES[name], cache)
    environment = debian.libraries(root)
    program = debian.program(root, name)
    configuration = place / f"{name}.conf"
    if name == "haproxy":
        configuration.write_text(text)
        command = [program, "-db", "-f", str(configuration)]
    else:
        paths = "".join(f"{kind}_temp_path {place}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        head = f"daemon off; pid {place}/pid; error_log {place}/error.log; events {{ worker_connections 1024; }}\n"
        configuration.write_text(f"{head}http {{ access_log off;\n{paths}{text}\n}}\n")
        command = [program, "-p", str(place), "-c", str(configuration)]
    log = open(place / "balancer.log", "w")
    return subprocess.Popen(command, env=environment | {"PATH": "/usr/bin:/bin"}, stdout=log, stderr=log)


def wait(port):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            return ask(port, "/r/first/v1/chat/completions", {}, "first")
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the balancer does not answer within 20 s")


def ask(port, path, headers, words):
    """Status and answer of one call."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = json.dumps({"model": "sim", "messages": [{"role": "user", "content": words}]})
    try:
        connection.request("POST", path, body, {"content-type": "application/json"} | headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def unnamed(port, name, report):
    status, said = ask(port, "/v1/chat/completions", {}, "whose?")
    hint = "AEGIS_INSTANCES" in said and "/r/<run>/v1" in said and "x-aegis-run" in said
    report.check(f"{name}: a request that names no run is refused, with what to do", status == 400 and hint, f"{status} {said}")


def metrics(control):
    """What a proxy counts, by series; histograms and series of several labels summed up by name, and by name and status."""
    request = urllib.request.Request(f"http://127.0.0.1:{control}/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    sums = Counter()
    for line in urllib.request.urlopen(request, timeout=20).read().decode().splitlines():
        if line.startswith("#"):
            continue
        series, _, value = line.rpartition(" ")
        name, _, labels = series.partition("{")
        sums[name] += float(value)
        for label in re.findall(r'(?:status|kind)="[^"]*"', labels):
            sums[f"{name} {label}"] += float(value)
    return sums


class Crowd:
    """All runs, half named by path and half by header. Half way all wait while both proxies' counts are read; soon after that
    the victim is killed."""

    def __init__(self, port, victim, controls):
        self.port, self.victim, self.controls = port, victim, controls
        self.changed = threading.Condition()
        self.todo, self.seen = iter(range(RUNS)), {}
        self.made, self.under_way, self.waiting = 0, 0, False
        # What the clients know when all is quiet, and what the proxies say then.
        self.statuses, self.tokens, self.runs, self.counted = Counter(), Counter(), set(), None
        self.known = None

    def work(self):
        """Gives the statuses by run."""
        threads = [threading.Thread(target=self.client) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.seen

    def client(self):
        while True:
            with self.changed:
                number = next(self.todo, None)
            if number is None:
                return
            run = f"run-{number:03}"
            by_path = number % 2 == 0
            path, headers = (f"/r/{run}/v1/chat/completions", {}) if by_path else ("/v1/chat/completions", {"x-aegis-run": run})
            statuses = [self.call(run, path, headers, f"{run}, call {call}") for call in range(CALLS)]
            with self.changed:
                self.seen[run] = statuses

    def call(self, run, path, headers, words):
        with self.changed:
            self.changed.wait_for(lambda: not self.waiting)
            self.under_way += 1
        status, said = 0, ""
        try:
            status, said = ask(self.port, path, headers, words)
        except (OSError, http.client.HTTPException):
            pass
        with self.changed:
            self.under_way -= 1
            self.made += 1
            self.statuses[status] += 1
            self.runs.add(run)
            if status == 200:
                usage = json.loads(said)["usage"]
                self.tokens.update({"input": usage["prompt_tokens"], "output": usage["completion_tokens"]})
            if self.made == LOOK:
                self.waiting = True
            if self.made == KILL:
                self.victim.kill()
            if self.waiting and self.under_way == 0 and self.counted is None:
                self.counted = [metrics(control) for control in self.controls]
                self.known = (dict(self.statuses), dict(self.tokens), len(self.runs))
                self.waiting = False
            self.changed.notify_all()
        return status


def added_up(name, first, crowd, report):
    """What both proxies count together is what the clients made and got: `first` is the answer to the run before theirs."""
    if not report.check(f"{name}: both proxies' counts were read half way", crowd.counted is not None, crowd.statuses):
        return
    one, other = crowd.counted
    both = one + other
    (statuses, tokens, runs), usage = crowd.known, json.loads(first[1])["usage"]
    report.check(f"{name}: each has counted calls of its own", min(one["aegis_calls_total"], other["aegis_calls_total"]) > 0, crowd.counted)
    report.equal(f"{name}: calls, added up", both["aegis_calls_total"], sum(statuses.values()) + 1)
    report.equal(f"{name}: answered calls, added up", both['aegis_calls_total status="2xx"'], statuses[200] + 1)
    report.equal(f"{name}: runs, added up", both["aegis_runs_open"] + both["aegis_runs_ended_total"], runs + 1)
    report.equal(f"{name}: calls under way, when all is quiet", both["aegis_calls_under_way"], 0)
    for way, field in (("input", "prompt_tokens"), ("output", "completion_tokens")):
        report.equal(f"{name}: {way} tokens, added up", both[f'aegis_tokens_total kind="{way}"'], tokens[way] + usage[field])
    report.equal(f"{name}: the times of calls, added up", both["aegis_call_duration_seconds_count"], both["aegis_calls_total"])


def judge(aegis, place, name, seen, survivor, report):
    logs = {side: place / "logs" / side for side in ("a", "b")}
    held = {side: {path.name for path in folder.iterdir() if (path / "run.json").is_file()} for side, folder in logs.items()}
    report.equal(f"{name}: no run is in two proxies", held["a"] & held["b"], set())
    share = [len(runs) for runs in held.values()]
    report.check(f"{name}: both proxies have their share of the runs", min(share) >= RUNS // 8, share)
    broken = {run for run, statuses in seen.items() if statuses != [200] * CALLS}
    report.check(f"{name}: no run of the proxy that lived is interrupted", broken and not broken & held["b"], sorted(broken & held["b"]))
    whole = {run for run, statuses in seen.items() if statuses == [200] * CALLS}
    by_side = {side: counts(aegis, folder) for side, folder in logs.items()}
    report.equal(f"{name}: what the proxy that lived counts is what it recorded", (survivor["aegis_calls_total"], survivor["aegis_runs_open"] + survivor["aegis_runs_ended_total"]), (sum(by_side["b"].values()), len(by_side["b"])))
    recorded = {run: count for side in by_side.values() for run, count in side.items() if run in seen}
    calls = {run: recorded[run] for run in whole & set(recorded)}
    report.equal(f"{name}: what was answered was recorded, run by run", calls, {run: CALLS for run in whole})
    total = Counter(status for statuses in seen.values() for status in statuses)
    recorded = sum(recorded.values())
    # A call that was under way at the kill is in the record and has no answer: one a client at most.
    report.check(f"{name}: the counts of both proxies add up", total[200] <= recorded <= total[200] + CLIENTS, f"{recorded} recorded, {dict(total)}")


def counts(aegis, folder):
    """Calls by run; of a run that was cut its record is read, as its list says nothing of them."""
    rows = aegis.read("runs", folder, "--format", "json")["runs"]
    steps = lambda row: len(aegis.show(folder / row["run"])["steps"])
    return {row["run"]: steps(row) if row["calls"] is None else row["calls"] for row in rows}
