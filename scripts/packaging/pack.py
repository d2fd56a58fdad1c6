"""Packs a built `aegis`: an archive, and a wheel of the program and the Python package (`pip install`, `uvx`, `pipx`).

    pack.py BINARY OUT_DIR

The version is what the binary says; the wheel's platform is what the binary needs: the newest symbol version of glibc that it
asks for, read off its dynamic symbols (`objdump -T`).
"""

import base64
import hashlib
import io
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "aegis-proxy"
PACKAGE = ROOT / "python" / "aegis" / "src"
# A file in an archive that is made twice is the same: no time of its own.
EPOCH = (1980, 1, 1, 0, 0, 0)


def main():
    binary, out = Path(sys.argv[1]), Path(sys.argv[2])
    version = said_version(binary)
    glibc = needed_glibc(binary)
    machine = platform.machine()
    wheel = write_wheel(binary, out, version, f"manylinux_{glibc[0]}_{glibc[1]}_{machine}")
    archive = write_archive(binary, out, version, machine)
    print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB, needs glibc {glibc[0]}.{glibc[1]} or newer")
    print(f"{archive.name}  {archive.stat().st_size / 1e6:.1f} MB")


def said_version(binary):
    said = subprocess.run([str(binary), "--version"], check=True, capture_output=True, text=True).stdout
    return said.split()[1]


def needed_glibc(binary):
    """The oldest glibc that the binary runs on, as two numbers."""
    symbols = subprocess.run(["objdump", "-T", str(binary)], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d+\.\d+)", symbols)}
    if not versions:
        raise SystemExit(f"`{binary}` asks for no glibc: expected a dynamically linked program for Linux")
    # manylinux begins with 2.5.
    return max(max(versions)[:2], (2, 5))


def write_wheel(binary, out, version, platform_tag):
    dist, tag = NAME.replace("-", "_"), f"py3-none-{platform_tag}"
    path = out / f"{dist}-{version}-{tag}.whl"
    metadata = (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n"
        "Summary: Transparent proxy that records multi-agent LLM runs and plants known errors with ground-truth labels\n"
        "License: MIT OR Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
    ) + (ROOT / "README.md").read_text()
    info = f"{dist}-{version}.dist-info"
    modules = sorted(path for path in (PACKAGE / "aegis").iterdir() if path.is_file())
    files = [
        *((path.relative_to(PACKAGE).as_posix(), path.read_bytes(), 0o644) for path in modules),
        (f"{dist}-{version}.data/scripts/aegis", binary.read_bytes(), 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: aegis\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        *((f"{info}/licenses/{name}", (ROOT / name).read_bytes(), 0o644) for name in ("LICENSE-MIT", "LICENSE-APACHE")),
    ]
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data, mode in [*files, (f"{info}/RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)
    return path


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_archive(binary, out, version, machine):
    top = f"aegis-{version}-{machine}-linux-gnu"
    path = out / f"{top}.tar.gz"
    files = [("aegis", binary, 0o755), *((name, ROOT / name, 0o644) for name in ("README.md", "LICENSE-MIT", "LICENSE-APACHE"))]
    with tarfile.open(path, "w:gz") as archive:
        for name, source, mode in files:
            data = source.read_bytes()
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return path


if __name__ == "__main__":
    main()
