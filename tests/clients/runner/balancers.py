"""Two proxies behind haproxy and behind nginx, with the configurations of docs/scale.md: 200 runs, one proxy killed."""

import http.client
import json
import re
import subprocess
import threading
import time
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
DOCS = Path(__file__).resolve().parents[3] / "docs" / "scale.md"


def test(aegis, cache, folder, name, report):
    place = folder / name
    place.mkdir()
    instances = [instance(aegis, place / "logs" / side) for side in ("a", "b")]
    port = free_ports(1)[0]
    balancer = start(name, cache, place, port, [address for _, address in instances])
    try:
        wait(port)
        unnamed(port, name, report)
        victim = instances[0][0]
        seen = clients(port, victim)
    finally:
        for process in (balancer, *(process for process, _ in instances)):
            process.terminate()
        for process in (balancer, *(process for process, _ in instances)):
            process.wait(timeout=20)
    judge(aegis, place, name, seen, report)


def instance(aegis, logs):
    """One of two proxies."""
    logs.mkdir(parents=True)
    log = open(logs.parent / f"{logs.name}.stderr", "w+")
    command = [aegis.binary, "serve", "--upstream", "simulator", "--listen", "127.0.0.1:0", "--log-dir", str(logs)]
    environment = aegis.environment | {"AEGIS_INSTANCES": "2"}
    process = subprocess.Popen(command, cwd=logs, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
    return process, listening(process, log)


def start(name, cache, place, port, addresses):
    """The balancer, by the configuration that the documentation shows."""
    text = re.search(rf"```{name}\n(.*?)```", DOCS.read_text(), re.DOTALL).group(1)
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


def clients(port, victim):
    """All runs, half named by path and half by header; the victim is killed in the middle. Gives the statuses by run."""
    seen, lock, todo = {}, threading.Lock(), iter(range(RUNS))
    answered = [0]

    def work():
        while True:
            with lock:
                number = next(todo, None)
            if number is None:
                return
            run = f"run-{number:03}"
            by_path = number % 2 == 0
            path, headers = (f"/r/{run}/v1/chat/completions", {}) if by_path else ("/v1/chat/completions", {"x-aegis-run": run})
            statuses = []
            for call in range(CALLS):
                try:
                    statuses.append(ask(port, path, headers, f"{run}, call {call}")[0])
                except (OSError, http.client.HTTPException):
                    statuses.append(0)
                with lock:
                    answered[0] += 1
                    if answered[0] == RUNS * CALLS // 2:
                        victim.kill()
            with lock:
                seen[run] = statuses

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def judge(aegis, place, name, seen, report):
    logs = {side: place / "logs" / side for side in ("a", "b")}
    held = {side: {path.name for path in folder.iterdir() if (path / "run.json").is_file()} for side, folder in logs.items()}
    report.equal(f"{name}: no run is in two proxies", held["a"] & held["b"], set())
    share = [len(runs) for runs in held.values()]
    report.check(f"{name}: both proxies have their share of the runs", min(share) >= RUNS // 8, share)
    broken = {run for run, statuses in seen.items() if statuses != [200] * CALLS}
    report.check(f"{name}: no run of the proxy that lived is interrupted", broken and not broken & held["b"], sorted(broken & held["b"]))
    whole = {run for run, statuses in seen.items() if statuses == [200] * CALLS}
    recorded = {run: count for folder in logs.values() for run, count in counts(aegis, folder).items() if run in seen}
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
