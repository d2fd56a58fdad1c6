"""The page on the log's format: its schema, its example, and the reader that is written from it."""

import importlib.util
import json
import re
import subprocess
import sys
import zlib

import aegis
import pytest
import xxhash
from aegis.log import read_log
from conftest import FIXTURES, REPOSITORY
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

PAGE = (REPOSITORY / "docs" / "reference" / "log-format.md").read_text()
SCHEMA = json.loads((REPOSITORY / "schemas" / "log.schema.json").read_text())


def reader():
    found = importlib.util.spec_from_file_location("read_log", REPOSITORY / "examples" / "read_log.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def branches():
    """The schema of each kind of record."""
    return {branch["properties"]["kind"]["const"]: branch for branch in SCHEMA["$defs"]["Record"]["oneOf"]}


def lines(directory):
    return read_log(directory).text.splitlines(keepends=True)


@pytest.fixture
def recordings(demo, odd, rolled):
    return [*FIXTURES, odd.directory, rolled.directory, *(run.directory for run in list(aegis.corpus(demo / "logs"))[::4])]


def test_every_line_fits_the_schema(recordings):
    validator = Draft202012Validator(SCHEMA)
    kinds, seen = set(), 0
    for directory in recordings:
        for line in lines(directory):
            told = json.loads(line)
            found = next(validator.iter_errors(told), None)
            assert found is None, (directory.name, found.json_path, found.message[:300])
            kinds.add(told["rec"]["kind"])
            seen += 1
    assert kinds >= {"text", "open", "inject", "close", "stop"} and seen > 500


STOP = {"kind": "stop", "at": "2026-01-01T00:00:00Z", "exchanges": 1, "open": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"seq": -1},
        {"crc": "0"},
        {"v": 2},
        {"more": 1},
        {"rec": {"kind": "stop"}},
        {"rec": STOP | {"more": 1}},
        {"rec": {"kind": "text", "hash": "x", "text": ""}},
        {"rec": {"kind": "later"}},
    ],
)
def test_what_this_version_does_not_write_does_not_fit(change):
    line = {"v": 1, "seq": 0, "crc": "00000000", "rec": STOP}
    assert Draft202012Validator(SCHEMA).is_valid(line) and not Draft202012Validator(SCHEMA).is_valid(line | change)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "schemas").rglob("*.schema.json")), ids=lambda path: path.stem)
def test_schemas_are_schemas(path):
    Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_the_document_is_openapi():
    assert list(OpenAPIV31SpecValidator(json.loads((REPOSITORY / "schemas" / "openapi.json").read_text())).iter_errors()) == []


def test_a_strangers_reader_rebuilds_every_body(demo, odd, rolled):
    """Of every recording that there is; written from the page and the schema alone, in 40 lines."""
    path = REPOSITORY / "tests" / "clients" / "python_reader" / "reader.py"
    assert len(path.read_text().splitlines()) <= 40
    found = importlib.util.spec_from_file_location("strangers_reader", path)
    strangers = importlib.util.module_from_spec(found)
    found.loader.exec_module(strangers)
    directories = [*FIXTURES, odd.directory, rolled.directory, *(run.directory for run in aegis.corpus(demo / "logs"))]
    for directory in directories:
        named = {match for line in lines(directory) for match in re.findall(rb'"hash":"([0-9a-f]{32})","len":', line)}
        rebuilt = {}
        for body, whole in strangers.bodies(directory):
            assert xxhash.xxh3_128_hexdigest(whole) == body["hash"] and len(whole) == body["len"], directory
            rebuilt[body["hash"].encode()] = whole
        assert named == rebuilt.keys(), directory
    assert len(directories) > 130


def test_the_reader_of_the_page_rebuilds_every_body(recordings):
    rebuilt = 0
    for directory in recordings:
        for _, _, body, whole in reader().bodies(lines(directory), directory / "blobs"):
            assert xxhash.xxh3_128_hexdigest(whole) == body["hash"]
            rebuilt += 1
    assert rebuilt > 500


def test_the_reader_is_a_program(odd):
    options = [sys.executable, str(REPOSITORY / "examples" / "read_log.py"), str(odd.directory)]
    whole = b"".join(lines(odd.directory))
    done = subprocess.run(options, input=whole, capture_output=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2 * len(odd.wire)
    assert subprocess.run(options, input=whole[:-5], capture_output=True).returncode == 1
    # What stands in head and log counts once.
    twice = whole[: whole.index(b"\n") + 1] + whole
    assert subprocess.run(options, input=twice, capture_output=True).stdout == done.stdout


def test_the_example_of_the_page_is_true():
    blocks = re.findall("```json\n(.*?)```", PAGE, re.DOTALL)
    line, records, first, second = blocks
    crc, record = re.search(r'"crc":"(\w+)","rec":(.*)\}\n', line).groups()
    assert zlib.crc32(record.encode()) == int(crc, 16)
    numbered = []
    for number, text in enumerate(records.splitlines()):
        numbered.append(f'{{"v":1,"seq":{number},"crc":"{zlib.crc32(text.encode()):08x}","rec":{text}}}\n'.encode())
    rebuilt = [(body["hash"], whole) for _, _, body, whole in reader().bodies(numbered, None)]
    assert [whole for _, whole in rebuilt] == [first.strip().encode(), second.strip().encode()]
    assert all(xxhash.xxh3_128_hexdigest(whole) == name for name, whole in rebuilt)


def test_the_page_names_every_kind_and_field():
    """Each kind of the schema has its row, with its fields."""
    for kind, branch in branches().items():
        (row,) = [row for row in PAGE.splitlines() if row.startswith("| `") and f"`{kind}`" in row.split("|")[1]]
        fields = set(branch["properties"]) - {"kind"}
        assert fields <= set(re.findall(r"`(\w+)`", row)), (kind, fields - set(re.findall(r"`(\w+)`", row)))
