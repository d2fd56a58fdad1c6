"""Programs that are learned once and then named: nothing is known of them before their first run.

Each folder below `learned/` holds an ordinary program (`main.py` or `main.mjs`) and `expect.toml`, which says how to
tell its agents apart by words of their own prompts. That is the truth that the binary's word is compared with; the
binary is not told.
"""

import shutil
import tomllib

from . import environments

# Two questions: the second run is not a copy of the first.
QUESTIONS = [
    "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?",
    "A farmer has 15 crates with 8 apples each. He sells 24 apples. How many apples does he have left?",
]


def folders(root):
    return sorted(path.parent for path in (root / "learned").glob("*/expect.toml"))


def test(folder, aegis, cache, report):
    """First run, proposed roster, a person's names, second run."""
    expected = tomllib.loads((folder / "expect.toml").read_text())
    report.heading(f"{folder.name}: learned")
    case = Case(folder, aegis, report, expected, command(folder, expected, cache))
    first = case.run("first", QUESTIONS[0])
    if first is None:
        return
    names = case.learned(first)
    roster = case.roster(first, names)
    second = case.run("second", QUESTIONS[1], roster) if roster else None
    if second is not None:
        case.named(second)


def command(folder, expected, cache):
    if (folder / "main.mjs").is_file():
        modules = environments.node(cache, "learned/node")
        return ["node", str(shutil.copy(folder / "main.mjs", modules / f"{folder.name}.mjs"))]
    return [str(environments.python(expected["environment"], cache)), str(folder / "main.py")]


class Case:
    """One program and the checks on it."""

    def __init__(self, folder, aegis, report, expected, command):
        self.folder, self.aegis, self.report, self.expected, self.command = folder, aegis, report, expected, command

    def equal(self, what, seen, wanted):
        return self.report.equal(f"{self.folder.name}: {what}", seen, wanted)

    def true(self, what, ok, why=""):
        return self.report.check(f"{self.folder.name}: {what}", ok, why)

    def run(self, name, question, roster=None):
        """One run; gives its steps, each with the agent that truly made it."""
        folder = self.aegis.logs(f"{self.folder.name}-{name}")
        if roster:
            (folder / "aegis.toml").write_text(roster)
        done = self.aegis.run([*self.command, question], folder, name=f"{self.folder.name}-{name}")
        talk = f"{done.stdout[-1500:]}\n{done.stderr[-2500:]}"
        ends = done.code == 0 and done.directory and "FINAL: " in done.stdout
        if not self.true(f"the {name} run ends well", ends, f"{done.code}\n{talk}"):
            return None
        self.directory = done.directory
        steps = self.aegis.agents(done.directory)["steps"]
        requests = [self.aegis.show(done.directory, "--step", step["step"])["steps"][0]["request"] for step in steps]
        for step, request in zip(steps, requests):
            step["truth"] = self.truth(request)
        spoken = [step["truth"] for step in steps]
        wanted = {agent["name"]: agent["calls"] for agent in self.expected["agent"]}
        self.equal(f"every call of the {name} run is one agent's", [who for who in spoken if who not in wanted], [])
        calls = {agent: spoken.count(agent) for agent in wanted}
        self.equal(f"the agents of the {name} run speak as often as the program has them speak", calls, wanted)
        return steps

    def truth(self, request):
        """The agent whose own words the request's prompt holds; several are none."""
        roles = ("system", "developer")
        prompt = " ".join(str(said["content"]) for said in request["messages"] if said["role"] in roles)
        fits = [
            agent["name"]
            for agent in self.expected["agent"]
            if agent["says"] in prompt and not any(words in prompt for words in agent.get("lacks", []))
        ]
        return fits[0] if len(fits) == 1 else f"{fits or 'nobody'}"

    def learned(self, steps):
        """Checks what the first run says of its agents; gives the proposed name of each true agent."""
        keys = {}
        for step in steps:
            keys.setdefault(step["truth"], set()).add(step["agent"])
        self.equal("each agent has one key", {name: len(known) for name, known in keys.items()}, dict.fromkeys(keys, 1))
        self.equal("no two agents share a key", len({key for known in keys.values() for key in known}), len(keys))
        self.in_doubt("first", steps)
        told = {step["truth"] for step in steps if step["suggested"] == step["truth"]}
        wanted = {agent["name"] for agent in self.expected["agent"] if agent.get("named")}
        self.equal("who is named without help", sorted(told), sorted(wanted))
        return {step["truth"]: step["suggested"] for step in steps}

    def in_doubt(self, which, steps):
        """Where the wire cannot tell equal agents apart it says so, and nowhere else."""
        doubted = {agent["name"]: 0 for agent in self.expected["agent"]}
        for step in steps:
            doubted[step["truth"]] += step["ambiguous"]
        allowed = {agent["name"]: agent.get("ambiguous", [0]) for agent in self.expected["agent"]}
        fits = all(doubted[name] in counts for name, counts in allowed.items())
        self.true(f"the wire cannot tell as many calls of the {which} run as it says", fits, f"{doubted}, not {allowed}")

    def roster(self, steps, names):
        """The proposed roster, with the names that a person gives where the wire told none."""
        done = self.aegis.call("agents", self.directory, "--suggest")
        if not self.true("a roster is proposed", done.code == 0, done.stderr):
            return None
        text = done.stdout
        for truth, proposed in names.items():
            text = text.replace(f'name = "{proposed}"\n', f'name = "{truth}"\n')
        rules = tomllib.loads(text).get("agent", [])
        by_rule = {step["truth"] for step in steps if step["source"] != "dialect"}
        self.equal("it has a rule for each agent that needs one", sorted({r["name"] for r in rules}), sorted(by_rule))
        file = self.aegis.logs(f"{self.folder.name}-roster") / "aegis.toml"
        file.write_text(text)
        checked = self.aegis.call("agents", self.directory, "--roster", file)
        self.true("the roster fits the run that it comes from", checked.code == 0, checked.stdout + checked.stderr)
        return text

    def named(self, steps):
        """Every call of another run is its true agent's, and certain but where equal agents are in doubt."""
        self.equal("every call is named right", [s["agent"] for s in steps], [s["truth"] for s in steps])
        known = {step["source"] for step in steps}
        self.true("by the roster, or by the framework's own words", known <= {"roster", "dialect"}, known)
        self.in_doubt("second", steps)
        wrong = [step["step"] for step in steps if step["labels"] and step["agent"] != step["truth"]]
        self.equal("no label could name a wrong agent", wrong, [])
