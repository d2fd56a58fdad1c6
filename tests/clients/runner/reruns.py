"""A recorded program once more: replayed offline, forked, tried again with a note, and compared with its record."""

import json
import shlex

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


def retried(case, command, error):
    """A note reaches the blamed agent at its call, the program as it is; four arms are executed, and no label is written."""
    logs = case.aegis.logs("retry")
    logs.mkdir(parents=True, exist_ok=True)
    note, record = logs / "note.txt", case.done.directory
    note.write_text("A number was copied wrongly. Copy each number as it was given.\n")
    check = f"grep -qx {shlex.quote('FINAL: ' + case.answer)}"
    arguments = ["--upstream", "simulator", "--log-dir", logs, "--critique", note, "--at", error["step"], "--samples", 1]
    arguments += ["--check", check, "--preferences", logs / "pairs.jsonl", "--timeout", 120, "--format", "json"]
    before = case.done.file("label.json")
    done = case.aegis.call("retry", record, *arguments, "--", *command, folder=case.folder, seconds=900)
    lines = done.stdout.strip().splitlines()
    if not case.true("a retry ends with its figures", lines, done.stderr[-2500:]):
        return
    said = json.loads(lines[-1])
    arms = {arm["arm"]: arm for arm in said["rounds"][0]["arms"]}
    case.equal("every arm is executed once", sorted(arms), ["check_work", "critique", "elsewhere", "resample"])
    case.equal("no execution is void", [arm["void"] for arm in arms.values() if arm.get("void")], [])
    case.true("with the note the answer is right", arms["critique"]["passed"] == 1 and done.code == 0, done.stderr[-2500:])
    case.equal("the label is as it was", case.done.file("label.json"), before)
    run = next(one["run"] for one in said["rounds"][0]["executions"] if one["arm"] == "critique")
    steps = case.aegis.show(logs / record.name / "retry" / run)["steps"]
    told = [(step["agent"], step["call"]) for step in steps if "Review note" in json.dumps(step["request_sent"])]
    case.equal("the note reached the blamed agent at its call alone", told, [(error["agent"], error["call"])])
    own = [step["step"] for step in steps if "Review note" in json.dumps(step["request"])]
    case.equal("the program did not write it", own, [])
    pairs = [json.loads(line) for line in (logs / "pairs.jsonl").read_text().splitlines()]
    case.true("a preference pair comes of it", pairs and all(pair["chosen"] != pair["rejected"] for pair in pairs), pairs)
