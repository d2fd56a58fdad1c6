"""A recorded program once more: replayed offline, forked, and compared with its record."""

import json

OTHER = "Tom has 3 apples. He buys 4 more apples. How many apples does Tom have?"


def replayed(case, command):
    """The record answers every call; nothing is missed or left over; the second run is the first."""
    logs = case.aegis.logs("replay")
    record = case.done.directory
    arguments = ["--log-dir", logs, "--run", "again", "--explain", "--format", "json", "--timeout", 120]
    done = case.aegis.call("replay", record, *arguments, "--", *command, folder=case.folder, seconds=150)
    if not case.true("the replay ends well", done.code == 0, f"{done.code}\n{done.stdout[-1500:]}\n{done.stderr[-2500:]}"):
        return
    report = json.loads(done.stdout.strip().splitlines()[-1])["report"]
    steps = len(case.aegis.agents(record)["steps"])
    case.equal("every step is served once", sorted(served["recorded"] for served in report["served"]), list(range(steps)))
    case.equal("nothing is missed", report["missed"], [])
    case.equal("nothing is left over", report["unused"], [])
    compared = case.aegis.call("diff", record, logs / "again", folder=case.folder)
    case.equal("the replay does not differ from its record", compared.code, 0)
    case.true("the answer is the recorded one", f"FINAL: {case.answer}" in done.stderr, done.stderr[-1500:])


def forked(case, command):
    """A fork serves what came before it from the record and goes live after it; another program diverges."""
    record = case.done.directory
    steps = len(case.aegis.agents(record)["steps"])
    for options, at in ((["--empty"], 0), (["--keep"], steps - 1)):
        sample = fork(case, record, command, ["--at", at, *options])
        if not case.true(f"a fork at {at} {options[0]} ends", sample is not None, case.talk()):
            continue
        report = sample["report"]
        case.equal(f"a fork at {at} does not diverge", report["diverged"], None)
        served = sorted(served["recorded"] for served in report["served"])
        case.true(f"a fork at {at} is served the prefix", set(range(at + 1)) <= set(served), served)
        case.true(f"a fork at {at} goes on live", report["live"] or at == steps - 1, report)
    sample = fork(case, record, [*command, OTHER], ["--at", steps - 1, "--keep"])
    diverged = sample and sample["report"]["diverged"]
    case.true("another task diverges, and is told where", diverged and diverged["nearest"]["difference"], sample)


def fork(case, record, command, options):
    logs = case.aegis.logs("fork")
    arguments = ["--log-dir", logs, "--format", "json", "--timeout", 120, "--upstream", "simulator", *options]
    done = case.aegis.call("fork", record, *arguments, "--", *command, folder=case.folder, seconds=150)
    lines = done.stdout.strip().splitlines()
    if not lines:
        case.true("the fork says what came of it", False, done.stderr[-2000:])
        return None
    return json.loads(lines[-1])["samples"][0]
