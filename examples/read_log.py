"""Rebuilds every body of a recording's log, by docs/reference/log-format.md alone. Python's standard library is enough.

zstd -dc logs/RUN/log.jsonl.zst | python3 examples/read_log.py logs/RUN          a sealed log
python3 examples/read_log.py logs/RUN < logs/RUN/log.jsonl                       a short one, or of an open run
(zstd -dc logs/RUN/head.jsonl.zst; cat logs/RUN/log.jsonl) | python3 …           an open run with a long log
"""

import base64
import json
import re
import sys
import zlib
from pathlib import Path

LINE = re.compile(rb'\{"v":1,"seq":(\d+),"crc":"([0-9a-f]{8})","rec":(.*)\}\n', re.DOTALL)


def records(lines):
    """The records of whole lines, in order; lines that stand in head and log count once."""
    read = 0
    for line in lines:
        found = LINE.fullmatch(line)
        if not found or zlib.crc32(found[3]) != int(found[2], 16) or int(found[1]) > read:
            raise SystemExit(f"line {read} is torn or damaged")
        if int(found[1]) == read:
            read += 1
            yield json.loads(found[3])


def bodies(lines, blobs):
    """Each body: its record, the name under which it stands there, the body's own record, its bytes."""
    texts, known = {}, {}

    def of_segment(segment):
        if isinstance(segment, str):
            return segment.encode()
        if isinstance(segment, list):
            return json.dumps(texts[segment[0]], ensure_ascii=segment[1:] == [1])[1:-1].encode()
        return base64.b64decode(segment["b64"]) if "b64" in segment else (blobs / segment["blob"]).read_bytes()

    def rebuilt(body):
        if body["hash"] in known:
            return known[body["hash"]]
        parent, middle, event = known.get(body.get("parent"), b""), b"".join(map(of_segment, body.get("segs", []))), b""
        for _, start, end, segment in body.get("frames", []):
            event = event[:start] + of_segment(segment) + event[len(event) - end :]
            middle += event
        whole = parent[: body.get("shared", 0)] + middle + parent[len(parent) - body.get("shared_end", 0) :]
        assert len(whole) == body["len"], f"body {body['hash']} has {len(whole)} bytes, expected {body['len']}"
        return known.setdefault(body["hash"], whole)

    for record in records(lines):
        if record["kind"] == "text":
            texts[record["hash"]] = record["text"]
        for holder in (record, record.get("asked", {})):
            for name in ("body", "request", "reply", "delivered", "fuller", "question", "answer"):
                if name in holder:
                    yield record, name, holder[name], rebuilt(holder[name])


if __name__ == "__main__":
    for record, name, body, whole in bodies(sys.stdin.buffer, Path(sys.argv[1]) / "blobs"):
        print(f"{record['kind']:11} step {record['step']:<4} {name:9} {body['hash']}  {len(whole):7} bytes  {whole[:40]!r}")
