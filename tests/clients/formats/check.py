"""Loads every exported format with the tool that it is for. Prints one JSON line per check.

    check.py AEGIS FOLDER
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import datasets
import duckdb
import pandas
from google.protobuf import json_format
from inspect_ai.log import read_eval_log
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

import tables
from samples import clean, failure

AEGIS, FOLDER = sys.argv[1], Path(sys.argv[2])
RUNS = 30
# The samples here are made by hand: they have no changed bytes, which lint rightly minds.
ALLOWED = ["nothing-changed", "not-delivered", "shared-steps", "vocabulary", "run-id", "twin-differs"]
ROWS = ["aegis", "agentracer", "sft", "verl", "grpo", "dpo", "contrastive", "prm", "runs"]
ROOT = Path(__file__).resolve().parents[3]


def main():
    rows = [sample(number) for number in range(1, RUNS + 1) for sample in (clean, failure)]
    source = FOLDER / "own.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in [*ROWS, "mast", "inspect", "otlp", "har", "atif", "whowhen", "whowhen-hand-crafted"]:
        done = export(source, name)
        check(f"{name} is exported", done.returncode == 0, done.stderr)
    for tool in (rows_in_python, hugging_face, frames, trainers, inspect, spans, archive, documents, back_again, rewards, parquet, hub_folder, schemas):
        try:
            tool()
        except Exception as error:
            check(f"{tool.__name__} ends", False, f"{type(error).__name__}: {error}")


def rows_in_python():
    """Our own rows, by the package `aegis`."""
    sys.path.insert(0, str(ROOT / "python" / "aegis" / "src"))
    from aegis import load_dataset

    rows = load_dataset(FOLDER / "own.jsonl")
    table = rows.to_datasets()
    check("aegis: rows as a Hugging Face data set", [json.loads(steps) for steps in table["steps"]] == [row["steps"] for row in rows])
    check("aegis: rows as a frame", rows.to_pandas()["label"].to_list() == [row["label"] for row in rows])


def export(source, name, out=None, *more):
    allowed = [word for rule in ALLOWED for word in ("--allow", rule)]
    return aegis("export", source, "--one-file", "--to", name, "--out", FOLDER / (out or f"{name}.out"), *allowed, *more)


def own(name, out, *more):
    return export(FOLDER / "own.jsonl", name, out, *more)


def parquet():
    tables.parquet(FOLDER, RUNS, own, check)


def hub_folder():
    tables.hub_folder(FOLDER, RUNS, own, check)


def schemas():
    tables.schemas(FOLDER, ROOT, check)


def aegis(*arguments):
    return subprocess.run([AEGIS, *map(str, arguments)], capture_output=True, text=True, cwd=FOLDER)


def hugging_face():
    """`datasets` reads every file of rows, and its features are those of the format."""
    for name in ROWS:
        loaded = datasets.load_dataset("json", data_files=str(FOLDER / f"{name}.out"), split="train", cache_dir=FOLDER / "cache")
        wanted = RUNS if name in ("dpo", "contrastive", "agentracer") else 2 * RUNS
        check(f"datasets loads {name}", len(loaded) == wanted, f"{len(loaded)} rows: {loaded.features}")
    sft = datasets.load_dataset("json", data_files=str(FOLDER / "sft.out"), split="train", cache_dir=FOLDER / "cache")
    answers = [json.loads(row["messages"][-1]["content"]) for row in sft]
    faulty = sum(bool(answer["faulty_agents"]) for answer in answers)
    check("sft answers are JSON, half of them name somebody", faulty == RUNS, faulty)


def frames():
    """pandas and DuckDB read the rows."""
    frame = pandas.read_json(FOLDER / "verl.out", lines=True)
    check("pandas reads verl's lines", len(frame) == 2 * RUNS and frame["prompt"][0][0]["role"] == "user", frame.dtypes)
    split = duckdb.sql(f"select extra_info.split, count(*) from read_json('{FOLDER}/verl.out') group by 1 order by 1").fetchall()
    check("DuckDB counts the parts", split == [("test", RUNS // 3 * 2), ("train", RUNS // 3 * 4)], split)
    pairs = duckdb.sql(f"select count(*) from read_json('{FOLDER}/dpo.out') where chosen[1].content <> rejected[1].content")
    check("DuckDB finds a difference in every pair", pairs.fetchall() == [(RUNS,)])


def trainers():
    """The columns that TRL tells its dataset types by."""
    wanted = {"sft": {"messages"}, "grpo": {"prompt", "ground_truth"}, "dpo": {"prompt", "chosen", "rejected"}, "prm": {"prompt", "completions", "labels"}}
    for name, columns in wanted.items():
        row = json.loads((FOLDER / f"{name}.out").read_text().splitlines()[0])
        check(f"{name} has TRL's columns", columns <= set(row), sorted(row))
    for line in (FOLDER / "prm.out").read_text().splitlines():
        row = json.loads(line)
        if len(row["completions"]) != len(row["labels"]):
            check("prm labels every completion", False, row)
    calls = json.loads((FOLDER / "dpo.out").read_text().splitlines()[0])["chosen"][0]["tool_calls"]
    check("tool arguments are objects", isinstance(calls[0]["function"]["arguments"], dict), calls)


def inspect():
    """Inspect AI reads its log, and what it writes again is read again."""
    path = FOLDER / "inspect.json"
    path.write_bytes((FOLDER / "inspect.out").read_bytes())
    log = read_eval_log(str(path))
    check("Inspect reads the log", log.status == "success" and len(log.samples) == 2 * RUNS, log.status)
    sample = log.samples[1]
    said = [message for message in sample.messages if message.source == "generate"]
    check("Inspect has messages, score and label", (len(said), sample.scores["outcome"].value) == (4, "I") and sample.metadata["label"], sample)
    given = [message for message in sample.messages if (message.metadata or {}).get("given")]
    check("Inspect has what the steps were given", given and all(message.source == "input" for message in given), sample.messages)


def spans():
    """The OpenTelemetry proto in Python parses the spans."""
    lines = (FOLDER / "otlp.out").read_text().splitlines()
    parsed = [json_format.Parse(line, TracesData()) for line in lines]
    spans = [span for data in parsed for resource in data.resource_spans for scope in resource.scope_spans for span in scope.spans]
    roots = [span for span in spans if not span.parent_span_id]
    check("the OpenTelemetry proto parses the spans", (len(roots), len(spans)) == (2 * RUNS, 10 * RUNS), len(spans))
    # OTLP/JSON writes ids as hex, which the proto's own JSON mapping takes for base64: they are judged as written.
    raw = [span for line in lines for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    whole = all(len(bytes.fromhex(span["traceId"])) == 16 and len(bytes.fromhex(span["spanId"])) == 8 for span in raw)
    check("span ids are whole and unique", whole and len({span["spanId"] for span in raw}) == len(raw))


def archive():
    """The archive has HAR's shape."""
    log = json.loads((FOLDER / "har.out").read_text())["log"]
    check("har has an entry a call", (log["version"], len(log["entries"])) == ("1.2", 8 * RUNS))


def documents():
    """ATIF's rules: steps count from 1, tool results name their call."""
    document = json.loads((FOLDER / "atif.out" / "f0001.json").read_text())
    ids = [step["step_id"] for step in document["steps"]]
    check("atif steps count from 1", ids == list(range(1, 6)), ids)
    result = document["steps"][2]["observation"]["results"][0]
    check("atif results name their call", result["source_call_id"] == document["steps"][2]["tool_calls"][0]["tool_call_id"], result)


def back_again():
    """What has a reader is read back; predictions that repeat the labels score 100."""
    for source, name in (("whowhen", "whowhen"), ("agentracer", "agentracer"), ("aegis", "aegis"), ("mast", "mast")):
        done = aegis("import", "--from", source, FOLDER / f"{name}.out", "--out", FOLDER / f"{name}.in", "--format", "json")
        read = json.loads(done.stdout or "{}")
        wanted = 2 * RUNS if source in ("aegis", "mast") else RUNS
        check(f"{name} is read back", read.get("samples") == wanted, done.stderr)
    rows = [json.loads(line) for line in (FOLDER / "whowhen.in" / "dataset.jsonl").read_text().splitlines()]
    said = ({"id": row["id"], "agent": row["label"]["errors"][0]["agent"], "step": row["label"]["errors"][0]["step"]} for row in rows)
    (FOLDER / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    done = aegis("score", "said.jsonl", "--gold", "whowhen.in", "--profile", "whowhen", "--format", "json")
    figures = {figure["name"]: figure["value"] for figure in json.loads(done.stdout)["public"]["figures"]}
    check("the labels score 100", figures["Step Accuracy"] == 100.0, figures)


def rewards():
    """The adapters give every row's own answer the whole reward."""
    examples = ROOT / "examples" / "rewards"
    for adapter, rows in (("trl_reward.py", "grpo.out"), ("verl_reward.py", "verl-few.out")):
        few = (FOLDER / rows.replace("-few", "")).read_text().splitlines()[:4]
        (FOLDER / "few.jsonl").write_text("\n".join(few) + "\n")
        command = [sys.executable, str(examples / adapter), str(FOLDER / "few.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"AEGIS_BIN": AEGIS})
        seen = [float(word) for word in done.stdout.replace("[", " ").replace("]", " ").replace(",", " ").split()]
        # Of failures and of clean runs alike.
        check(f"{adapter} rewards the truth", seen == [1.0, 1.0, 1.0, 1.0], f"{seen}\n{done.stderr}")
        with endpoint() as url:
            # No binary to start: only the endpoint can answer.
            asked = os.environ | {"AEGIS_REWARD_URL": url, "AEGIS_BIN": "/nonexistent"}
            again = subprocess.run(command, capture_output=True, text=True, env=asked)
        check(f"{adapter} rewards the same over HTTP", again.stdout == done.stdout, again.stdout + again.stderr)


@contextmanager
def endpoint():
    """A running `aegis reward`; gives its address."""
    process = subprocess.Popen([AEGIS, "reward", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://{json.loads(process.stdout.readline())['listen']}/rewards"
    finally:
        process.terminate()
        process.wait(timeout=20)


def check(name, ok, why=""):
    print(json.dumps({"check": name, "ok": bool(ok), "why": str(why)[:2000]}), flush=True)


if __name__ == "__main__":
    main()
