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

PAGE = (REPOSITORY / "docs" / "reference" / "log-format.md").read_text()
SCHEMA = json.loads((REPOSITORY / "schemas" / "log.schema.json").read_text())


def reader():
    found = importlib.util.spec_from_file_location("read_log", REPOSITORY / "examples" / "read_log.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def strict(schema):
    """The same schema where no member may be there that it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "properties" in schema and schema.get("type") == "object" else closed


def lines(directory):
    return read_log(directory).text.splitlines(keepends=True)


@pytest.fixture
def recordings(demo, odd, rolled):
    return [*FIXTURES, odd.directory, rolled.directory, *(run.directory for run in list(aegis.corpus(demo / "logs"))[::4])]


def test_every_line_fits_the_schema(recordings):
    Draft202012Validator.check_schema(SCHEMA)
    validator = Draft202012Validator(strict(SCHEMA))
    kinds, seen = set(), 0
    for directory in recordings:
        for line in lines(directory):
            told = json.loads(line)
            found = next(validator.iter_errors(told), None)
            assert found is None, (directory.name, found.json_path, found.message[:300])
            kinds.add(told["rec"]["kind"])
            seen += 1
    assert kinds >= {"text", "open", "inject", "close", "stop"} and seen > 500


@pytest.mark.parametrize(
    "change", [{"seq": -1}, {"crc": "0"}, {"rec": {"kind": "stop"}}, {"rec": {"kind": "text", "hash": "x", "text": ""}}, {"v": 2}]
)
def test_what_is_no_line_does_not_fit(change):
    line = {"v": 1, "seq": 0, "crc": "00000000", "rec": {"kind": "later", "more": 1}}
    assert Draft202012Validator(SCHEMA).is_valid(line) and not Draft202012Validator(SCHEMA).is_valid(line | change)


def test_the_schema_names_every_field_of_the_code():
    """Fields of the structs that records are written from."""
    code = (REPOSITORY / "crates" / "recording" / "src" / "recording" / "record.rs").read_text()
    named = set(re.findall(r'"([a-z_0-9]+)": \{', json.dumps(SCHEMA)))
    fields = re.findall(r'(rename = "(\w+)"\)\]\s+)?pub\(super\) (\w+): ', code)
    flattened = {"attribution", "relates", "sign", "unplaced"}
    missing = {rename or name for _, rename, name in fields} - named - flattened
    assert fields and not missing


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
    kinds = set(SCHEMA["$defs"]) - {"hash", "blake3", "segment", "body", "headers", "usage", "failure_mode", "pieces", "later"}
    for kind in kinds:
        (row,) = [row for row in PAGE.splitlines() if row.startswith("| `") and f"`{kind}`" in row.split("|")[1]]
        fields = set(SCHEMA["$defs"][kind]["properties"]) - {"kind"}
        assert fields <= set(re.findall(r"`(\w+)`", row)), (kind, fields - set(re.findall(r"`(\w+)`", row)))
