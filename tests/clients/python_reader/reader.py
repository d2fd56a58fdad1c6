"""Every body of recordings, rebuilt by docs/reference/log-format.md and schemas/log.schema.json: python3 reader.py RUN_DIR …"""
import base64, json, re, subprocess, sys, zlib
from pathlib import Path
LINE = re.compile(rb'\{"v":1,"seq":(\d+),"crc":"([0-9a-f]{8})","rec":(.*)\}', re.DOTALL)
BODIES = ("body", "request", "reply", "delivered", "fuller", "question", "answer")
def log(run):
    """The unpacked log, sealed or open. What is plain is read first: lines move from there to the head."""
    rest = (run / "log.jsonl").read_bytes() if (run / "log.jsonl").exists() else b""
    packed = [run / name for name in ("head.jsonl.zst", "log.jsonl.zst") if (run / name).exists()]
    return b"".join(subprocess.run(["zstd", "-dcq", name], capture_output=True).stdout for name in packed) + rest
def records(text):
    """Records in order. A line that stands in both files counts once; one that was cut at the end does not."""
    following = 0
    for line in text.split(b"\n")[:-1]:
        seq, crc, record = LINE.fullmatch(line).groups()
        assert zlib.crc32(record) == int(crc, 16) and int(seq) <= following, f"line {following} is damaged or missing"
        if int(seq) == following:
            following += 1
            yield json.loads(record)
def bodies(run):
    """Each body's own record, and its bytes."""
    texts, known = {}, {}
    def segment(part):
        if isinstance(part, list):  # A text, with few escapes or with all.
            return json.dumps(texts[part[0]], ensure_ascii=part[1:] == [1])[1:-1].encode()
        if isinstance(part, str):
            return part.encode()
        return base64.b64decode(part["b64"]) if "b64" in part else (run / "blobs" / part["blob"]).read_bytes()
    for record in records(log(run)):
        texts.update({record["hash"]: record["text"]} if record["kind"] == "text" else {})
        holders = [holder[name] for holder in (record, record.get("asked", {})) for name in BODIES if name in holder]
        for body in (holder for holder in holders if record["kind"] != "unplaced"):
            parent, middle, event = known.get(body.get("parent"), b""), b"".join(map(segment, body.get("segs", []))), b""
            for _, start, end, new in body.get("frames", []):
                event = event[:start] + segment(new) + event[len(event) - end :]
                middle += event
            whole = parent[: body.get("shared", 0)] + middle + parent[len(parent) - body.get("shared_end", 0) :]
            yield body, known.setdefault(body["hash"], whole)
if __name__ == "__main__":
    print(*(f"{body['hash']} {len(whole)}" for run in sys.argv[1:] for body, whole in bodies(Path(run))), sep="\n")
