"""Programs of Debian's packages, unpacked below the cache and not installed: nothing of the machine changes."""

import os
import shutil
import subprocess
from pathlib import Path

from .environments import InstallError, alone, call, digest, stamped, write_stamp


def unpacked(packages, cache):
    """The folder that the packages lie in, fetched and unpacked if one is not there or another is asked for."""
    with alone(cache, "debian"):
        return fetched_and_unpacked(packages, cache)


def fetched_and_unpacked(packages, cache):
    folder = cache / "debian" / digest(*(name.encode() for name in packages))[:16]
    stamp = digest(*(name.encode() for name in packages))
    if stamped(folder, stamp):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    fetched = folder / "packages"
    fetched.mkdir(parents=True)
    try:
        call(["apt-get", "download", "-qq", *packages], "Debian's packages", fetched)
    except InstallError:
        # The lists may be older than what the archive holds.
        call(["apt-get", "update", "-qq"], "Debian's package lists")
        call(["apt-get", "download", "-qq", *packages], "Debian's packages", fetched)
    for package in sorted(fetched.glob("*.deb")):
        call(["dpkg", "-x", str(package), str(folder)], package.name)
    shutil.rmtree(fetched)
    write_stamp(folder, stamp)
    return folder


def libraries(folder):
    """What a program of the folder needs in its environment to find its libraries."""
    triplet = subprocess.run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], capture_output=True, text=True)
    names = [triplet.stdout.strip()] if triplet.returncode == 0 else [path.name for path in (folder / "usr/lib").glob("*-linux-gnu*")]
    places = [str(folder / below / name) for below in ("usr/lib", "lib") for name in names]
    return {"LD_LIBRARY_PATH": ":".join([*places, os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")}


def program(folder, name):
    """The path of a program in the folder."""
    for below in ("usr/sbin", "usr/bin"):
        path = Path(folder, below, name)
        if path.is_file():
            return str(path)
    raise InstallError(f"`{name}` is in none of the packages that were unpacked")
