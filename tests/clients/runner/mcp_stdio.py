"""The part of the suite `mcp` about servers over standard input and output: the official SDKs' clients start `aegis mcp` in place of
a server, below `aegis run`.

A tee before the shim and one behind it keep each line that passes, so that the recording is held to what was said and not to itself.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .aegis import Aegis
from .report import Report

NAME = "mcp: stdio"
# Clients, and the SDK of the server that each starts.
PAIRS = {"python-1": "python-1", "python-2": "python-2", "typescript-1": "python-1", "typescript-2": "python-2"}
# The TypeScript SDKs drop progress that is read together with the answer, with and without a proxy.
FEWER = ["list", "add", "unicode", "long", "table", "fail", "unknown_tool", "route", "picture", "prompt", "remove", "parallel", "cancelled"]
EDITED = ["add", "unicode", "fail", "route", "slow"]
FAULTY = ["picture", "picture", "slow", "slow"]


@dataclass
class Stdio:
    """A client of one SDK, and the command of the server that it starts."""

    programs: object
    aegis: Aegis
    scratch: Path
    client: str

    def command(self, calls: list[str], shim: bool) -> list[str]:
        sdk = PAIRS[self.client]
        server = self.programs.command("server", sdk, "stdio")
        if shim:
            behind = [self.aegis.binary, "mcp", "calc", "--", *self.tee("behind"), *server]
            server = [*self.tee("front"), *behind]
        return self.programs.command("client", self.client, json.dumps(server), *calls)

    def tee(self, place: str) -> list[str]:
        python = self.programs.pythons["python-2"]
        return [python, str(self.programs.folder / "tee.py"), str(self.said(place))]

    def said(self, place: str) -> Path:
        return self.scratch / f"{self.client}-{place}.jsonl"

    def lines(self, place: str, side: str) -> list[str]:
        lines = map(json.loads, self.said(place).read_text().splitlines())
        return [line["line"].rstrip("\n") for line in lines if line["side"] == side]

    def recorded(self, calls: list[str], name: str, plan: Path | None = None):
        """A run of the client through the shim: what it printed, and what the binary says."""
        for place in ("front", "behind"):
            self.said(place).unlink(missing_ok=True)
        done = self.aegis.run(self.command(calls, True), self.scratch, plan=plan, name=f"mcp-stdio-{self.client}-{name}")
        return [line for line in done.stdout.splitlines() if line.startswith("{")], done


def test(programs, aegis: Aegis, report: Report, plans: Path) -> None:
    report.heading(NAME)
    for client in PAIRS:
        scratch = aegis.logs(f"mcp-stdio-{client}")
        scratch.mkdir(parents=True, exist_ok=True)
        stdio = Stdio(programs, aegis, scratch, client)
        clean(stdio, report)
        planted(stdio, report, plans)


def clean(stdio: Stdio, report: Report) -> None:
    calls = FEWER if stdio.client.startswith("typescript") else []
    direct = stdio.programs.client_of(stdio.command(calls, False))
    printed, done = stdio.recorded(calls, "clean")
    what = f"{NAME}: {stdio.client}"
    report.check(f"{what}: prints the same directly and through the proxy", printed == direct and len(direct) > 10, done.stderr[-600:])
    front, behind = (Counter(stdio.lines(place, "client")) for place in ("front", "behind"))
    report.equal(f"{what}: the server gets each line of the client, byte for byte", behind, front)
    attempts = stdio.programs.recorded([done.directory])[done.directory]
    posted = Counter(attempt["request"].decode() for attempt in attempts)
    report.equal(f"{what}: each line of the client is a step", posted, front)
    said = Counter(line for line in stdio.lines("front", "server"))
    late = Counter(stdio.lines("behind", "server"))
    report.equal(f"{what}: the client gets each line of the server, byte for byte", said - late, Counter())
    kept = [line for attempt in attempts for line in replies(attempt)]
    # Whoever has given a request up does not wait for its answer, which may come.
    left = [json.loads(attempt["request"])["id"] for attempt in attempts if attempt["cause"] == "client_gone"]
    read = [json.loads(line) for line in said.elements()]
    answers = [line for line, message in zip(said.elements(), read) if "method" not in message and message.get("id") not in left]
    report.equal(f"{what}: each answer is recorded byte for byte", Counter(answers) - Counter(kept), Counter())
    run = stdio.aegis.call("replay", done.directory, "--log-dir", stdio.aegis.logs(f"mcp-stdio-{stdio.client}-replay"), "--", *stdio.command(calls, True))
    again = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    wanted = [json.loads(line) for line in printed]
    report.check(f"{what}: a replay prints the same", again == wanted, run.stderr[-600:])


def replies(attempt: dict) -> list[str]:
    text = (attempt["reply"] or b"").decode()
    if not text.startswith("event:"):
        return [text]
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


def planted(stdio: Stdio, report: Report, plans: Path) -> None:
    what = f"{NAME}: {stdio.client}"
    printed, _ = stdio.recorded(EDITED, "edits", plans / "edits.toml")
    edited = " ".join(printed)
    words = ['"text":"6"', "Österreich ☃", "instrument", "4 kg to Århus", "undone"]
    missing = [word for word in words if word.replace(" ", "") not in edited.replace(" ", "")]
    report.check(f"{what}: the client sees each planned edit", not missing and len(printed) == len(EDITED), f"{missing} {edited[:900]}")
    printed, _ = stdio.recorded(FAULTY, "faults", plans / "faults.toml")
    errors = ["error" in json.loads(line) for line in printed]
    report.equal(f"{what}: the client sees each planned fault", errors, [True, False, True, False])
