"""The commands of the author's tutorial on a real small language model, with two frameworks: what the page says, but for what it
calls yours: the rows of the task sets, the upstream, the programs and their agents. On the simulator the page is run as it is
(`tests/it/readme.rs`)."""

import json
import re
import shlex
import time
from pathlib import Path

from . import environments, model, real_model

NAME = f"{real_model.NAME}-author"
REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = REPOSITORY / "docs" / "tutorials" / "author.md"
# Rows in the formats of GSM8K and MMLU, chosen by what the model can do: of MATH's problems it can do none.
ROWS = {
    "gsm8k.jsonl": {"question": "The room number is 42. What is the room number?", "answer": "#### 42"},
    "math.jsonl": {"question": "What is the capital of Japan?", "choices": ["Geneva", "Tokyo"], "answer": 1, "subject": "sample"},
}
# Perturbations are drawn from a run's name, and the model's address is part of that.
PORT = 8180
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def test(aegis, cache, report):
    """Run the page's commands in small; `aegis` is the built binary, `cache` where environments lie."""
    report.heading(f"{NAME}: the author's tutorial")
    began, before = time.monotonic(), real_model.spent()
    with model.served(cache, "--port", PORT) as url:
        author = Author(aegis, cache, report, url)
        blocks = BLOCK.findall(PAGE.read_text())
        tasks, campaign, tracers, table = (author.yours(block) for block in blocks)
        author.run("the task sets are imported", tasks)
        author.run("the campaign, lint and export end well", campaign)
        author.run("methods without a model answer", tracers)
        author.run("the model is asked as a tracer", author.hosted())
        for form in ("markdown", "latex"):
            said = author.run(f"the table is printed as {form}", table.replace("markdown", form).replace("rules.jsonl", "rules.jsonl hosted.jsonl"))
            lacking = [row for row in ("rules", "whowhen", "all-at-once", "random speaker, random step, random mode") if row not in said]
            report.equal(f"{NAME}: each method has its row, random too ({form})", lacking, [])
    made = json.loads((author.folder / "rows" / "report.json").read_text())
    report.check(f"{NAME}: failures are proven", made["funnel"]["verified"] > 0, made["funnel"])
    print(f"   {time.monotonic() - began:.0f} s, {real_model.spent() - before:.0f} s of them on a processor  {json.dumps(made['funnel'])}", flush=True)


class Author:
    """The directory in which an author types: what the page expects of the repository's is there."""

    def __init__(self, aegis, cache, report, url):
        self.aegis, self.report, self.url = aegis, report, url
        self.folder = aegis.logs("real-author")
        for name in ("plans", "examples"):
            (self.folder / name).symlink_to(REPOSITORY / name)
        (self.folder / "aegis").symlink_to(aegis.binary)
        self.python = {name: environments.python(real_model.SYSTEMS[name], cache) for name in ("pipeline", "debate")}

    def yours(self, text):
        """A block of the page, with the author's own in the places of the examples."""
        for file, row in ROWS.items():
            text = re.sub(rf"(cat > {file} <<'EOF'\n).*?(?=\nEOF)", lambda found: found[1] + json.dumps(row), text, flags=re.DOTALL)
        text = text.replace("--from math", "--from mmlu").replace('upstream = "simulator"', f'upstream = "{self.url}"')
        for name, python in self.python.items():
            program = real_model.ROOT / name
            command = json.dumps([str(python), str(program / "main.py"), "{question}", "0"])
            text = re.sub(rf'command = \["{{aegis}}", "example", "{name}".*', f"command = {command}", text)
            text = text.replace(f'"examples/{name}/aegis.toml"', f'"{program}/aegis.toml"')
        # In small; and the model proves what it proves soon, or not at all.
        text = text.replace("per_task = 4", "per_task = 2").replace("proof.repeatable = true", "proof = { repeatable = true, pairs = 12 }")
        return text.replace("aegis campaign author.toml", "aegis campaign author.toml --only 'pipeline/gsm8k-*' --only 'debate/mmlu-*'")

    def hosted(self):
        """The page's command that asks a hosted model, with this one."""
        line = re.search(r"^\$ (aegis attribute rows .*--model) \S+ (.*)$", PAGE.read_text(), re.MULTILINE)
        # Aegis' tracer asks a thousand words about clean runs as well: the suite `real-model` has it.
        asked = re.sub(r"--upstream \S+", f"--upstream {self.url}", line[1].replace("--tracer aegis ", ""))
        return f"{asked} {model.NAME} {line[2]} --parameter max_completion_tokens=96 --timeout 600 --log-dir asked"

    def run(self, what, text):
        """Let a shell do what the page says; gives what it printed."""
        text = re.sub(r"^aegis ", f"{shlex.quote(str(self.folder / 'aegis'))} ", text, flags=re.MULTILINE)
        (self.folder / "block.sh").write_text(text)
        shell = type(self.aegis)("/bin/bash", self.aegis.scratch, self.aegis.environment | {"OPENAI_API_KEY": "none"})
        done = shell.call("-e", "block.sh", folder=self.folder, seconds=real_model.PATIENCE)
        self.report.check(f"{NAME}: {what}", done.code == 0, f"{done.code}\n{text}\n{done.stdout[-1500:]}\n{done.stderr[-2500:]}")
        return done.stdout
