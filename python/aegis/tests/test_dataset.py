"""Rows of a data set, and tables of them where their packages are installed."""

import importlib.util
import json
import sys

import aegis
import pytest


def test_rows_are_those_of_the_file(demo):
    rows = aegis.load_dataset(demo)
    assert len(rows) == 28 and rows[0] == json.loads((demo / "dataset.jsonl").read_text().split("\n")[0])
    failures = rows.where(kind="failure")
    assert len(failures) == 16 and len(rows.where(kind="failure", split="no such split")) == 0 and len(rows[3:5]) == 2
    for row in failures:
        twin = rows.twin_of(row)
        assert twin["kind"] == "clean" and twin["task"]["id"] == row["task"]["id"]
    assert rows.twin_of({"id": "none"}) is None
    assert len(aegis.load_dataset(demo / "benign.jsonl")) == 20


def test_what_is_no_data_set_is_told(tmp_path):
    with pytest.raises(aegis.AegisError, match="dataset.jsonl"):
        aegis.load_dataset(tmp_path)
    file = tmp_path / "rows.jsonl"
    for text, error, says in [
        ("{", aegis.Corrupt, "line 1"),
        ('{"format": 1}\n\n[]', aegis.Corrupt, "line 3: it is no row"),
        ('{"messages": []}', aegis.Corrupt, "`format` is missing"),
        ('{"format": 2}', aegis.FutureFormat, "has format 2"),
    ]:
        file.write_text(text)
        with pytest.raises(error, match=says):
            aegis.load_dataset(file)


@pytest.mark.parametrize("package", ["pandas", "polars", "datasets"])
def test_a_table(demo, package):
    rows = aegis.load_dataset(demo)
    table = getattr(rows, f"to_{package}")
    if importlib.util.find_spec(package) is None:
        with pytest.raises(aegis.PackageMissing, match=f"pip install {package}"):
            table()
        return
    made = table()
    assert len(made) == 28 and list(made["id"]) == [row["id"] for row in rows]
    read = (lambda cell: cell) if package == "pandas" else json.loads
    assert [read(cell) for cell in made["steps"]] == [row["steps"] for row in rows]


@pytest.mark.parametrize("package", ["pandas", "polars", "datasets"])
def test_a_package_that_is_missing_is_named(demo, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(aegis.PackageMissing, match=f"pip install {package}"):
        getattr(aegis.load_dataset(demo), f"to_{package}")()
