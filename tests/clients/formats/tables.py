"""Parquet and the Hugging Face folder, read by pandas, DuckDB, pyarrow and `datasets`; every file against its schema."""

import json
import os

import datasets
import duckdb
import jsonschema
import pandas
import yaml

# Formats of rows that have columns in Parquet, and where a row of both forms must be the same.
ROWS = ["runs", "sft", "verl", "grpo", "dpo", "prm", "contrastive", "aegis", "agentracer"]


def parquet(folder, runs, export, check):
    """Each format as Parquet says what it says as JSON lines."""
    for name in ROWS:
        done = export(name, f"{name}.parquet")
        check(f"{name} is exported as Parquet", done.returncode == 0, done.stderr)
        lines = [json.loads(line) for line in (folder / f"{name}.out").read_text().splitlines()]
        loaded = datasets.load_dataset("parquet", data_files=str(folder / f"{name}.parquet"), split="train", cache_dir=folder / "cache")
        differs = next((n for n, (a, b) in enumerate(zip(loaded, lines)) if bare(a) != bare(b)), None)
        same = len(loaded) == len(lines) and differs is None
        why = "" if same else f"{len(loaded)} of {len(lines)}, row {differs}: {loaded[differs or 0]}\n{lines[differs or 0]}"
        check(f"datasets reads {name} from Parquet as from JSON", same, why)
    frame = pandas.read_parquet(folder / "runs.parquet")
    check("pandas reads runs", list(frame["kind"].value_counts()) == [runs, runs], frame.dtypes)
    verl = pandas.read_parquet(folder / "verl.parquet")
    check("pandas reads verl", verl["prompt"][0][0]["role"] == "user" and verl["extra_info"][1]["index"] == 1, verl.dtypes)
    counted = duckdb.sql(
        f"select e.error.agent, e.error.failure_mode, count(*) from (select unnest(errors) as error from '{folder}/runs.parquet') e group by all"
    ).fetchall()
    check("DuckDB counts errors", counted == [("solver", "FM-2.6", runs)], counted)
    inside = duckdb.sql(f"select count(*) from '{folder}/runs.parquet' where json_extract_string(label, '$.status') = 'verified'")
    check("DuckDB looks into JSON columns", inside.fetchall() == [(runs,)])
    again = export("parquet", "again.parquet")
    bytes_of = lambda name: (folder / name).read_bytes()
    check("`--to parquet` is the runs, byte for byte", again.returncode == 0 and bytes_of("again.parquet") == bytes_of("runs.parquet"), again.stderr)


def bare(value):
    """A value without what is absent: columns say `null` where lines say nothing. JSON columns may come as their text."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return value


def hub_folder(folder, runs, export, check):
    """`load_dataset(folder)` finds every format and part; the card is what the hub reads."""
    configs = ["runs", "sft", "grpo", "dpo", "prm"]
    for kind, more in (("parquet", []), ("jsonl", ["--lines"])):
        place = folder / f"hub-{kind}"
        done = export("huggingface", place.name, "--license", "cc-by-4.0", *more)
        check(f"a folder of {kind} is exported", done.returncode == 0, done.stderr)
        names = datasets.get_dataset_config_names(str(place))
        check(f"{kind}: datasets finds the formats", sorted(names) == sorted(configs), names)
        usual = datasets.load_dataset(str(place), cache_dir=folder / "cache")
        sizes = {part: len(rows) for part, rows in usual.items()}
        wanted = {"train": runs // 3 * 4, "test": runs // 3 * 2}
        check(f"{kind}: who names no format gets the runs by part", sizes == wanted and "steps" in usual["train"].features, sizes)
        tasks = [set(rows["task"]) for rows in usual.values()]
        check(f"{kind}: no task is in two parts", not set.intersection(*tasks))
        for name in configs[1:]:
            loaded = datasets.load_dataset(str(place), name, cache_dir=folder / "cache")
            full = sum(len(rows) for rows in loaded.values())
            check(f"{kind}: {name} is whole", full == (runs if name == "dpo" else 2 * runs), loaded)
    card = (folder / "hub-parquet" / "README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    check("the card's front matter", front["license"] == "cc-by-4.0" and [c["config_name"] for c in front["configs"]] == configs, front)
    for words in ("planted faults", "aegis:canary:", "FM-2.6", "no task is in two parts", "seeds | 7"):
        check(f"the card says `{words}`", words in card, card)
    export("huggingface", "hub-again", "--license", "cc-by-4.0")
    files = sorted(path.relative_to(folder / "hub-again") for path in (folder / "hub-again").rglob("*") if path.is_file())
    text = lambda place, file: (folder / place / file).read_bytes()
    check("two folders are byte-equal", all(text("hub-again", file) == text("hub-parquet", file) for file in files), files)


def schemas(folder, root, check):
    """What every writer wrote holds to the schema that lies in the repository."""
    # A line of a log is no export: the tests of `python/aegis` hold it to its schema.
    for path in sorted(path for path in (root / "schemas").glob("*.schema.json") if path.name != "log.schema.json"):
        name = path.name.removesuffix(".schema.json")
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        found = list(values(folder, name))
        validator = jsonschema.Draft202012Validator(schema)
        wrong = next((error for value in found for error in validator.iter_errors(value)), None)
        check(f"{name} holds to its schema", found and wrong is None, wrong and f"{wrong.json_path}: {wrong.message[:500]}")


def values(folder, name):
    """What is one value of a format: a line, a file, or the document."""
    place = folder / ("own.jsonl" if name == "dataset" else f"{name}.out" if name != "parquet" else "runs.out")
    if place.is_dir():
        return [json.loads((place / file).read_text()) for file in os.listdir(place)]
    text = place.read_text()
    if name in ("mast", "inspect", "har"):
        return [json.loads(text)]
    return [json.loads(line) for line in text.splitlines()]
