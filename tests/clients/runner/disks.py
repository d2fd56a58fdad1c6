"""Disks that fail: one that is full in the middle of a part, and one that is slow."""

import subprocess

from . import debian
from .scale_data import compared

STRACE = ["strace", "libunwind8"]
# Each of these waits so long, in microseconds: a network disk under load.
SLOW = "rename,renameat2,mkdir,mkdirat,unlink,unlinkat,fsync,fdatasync"
DELAY = 20_000
FULL = """
mkdir small && mount -t tmpfs -o size=300k tmpfs small || exit 9
"$0" campaign measured.toml --out small/out --shard 0/1 --jobs 2 -q
echo "full: $?"
df -k small
mount -o remount,size=200m small
"$0" campaign measured.toml --out small/out --shard 0/1 --jobs 2 -q
echo "room: $?"
"$0" shard merge small/out --out on-small/merged -q
echo "merged: $?"
"""


def test(aegis, cache, folder, report):
    run = {"cwd": folder, "env": aegis.environment, "capture_output": True, "text": True, "timeout": 200}
    full_disk(aegis, folder, run, report)
    slow_disk(aegis, cache, folder, run, report)


def full_disk(aegis, folder, run, report):
    done = subprocess.run(["unshare", "-m", "sh", "-c", FULL, aegis.binary], **run)
    said = done.stdout + done.stderr
    stopped = "full: " in said and "full: 0" not in said
    report.check("full disk: the part stops, and says why", stopped and "No space left" in said, said)
    report.check("full disk: with room again it goes on, and is whole", "room: 0" in said and "merged: 0" in said, said)
    compared(report, "full disk", folder, "on-small")


def slow_disk(aegis, cache, folder, run, report):
    root = debian.unpacked(STRACE, cache)
    slow = [debian.program(root, "strace"), "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={SLOW}"]
    slow += ["-e", f"inject={SLOW}:delay_enter={DELAY}"]
    run = run | {"env": aegis.environment | debian.libraries(root)}
    command = [*slow, aegis.binary, "campaign", "measured.toml", "--out", "on-slow", "--shard", "0/1", "--jobs", "2", "-q"]
    done = subprocess.run(command, **run)
    report.check("slow disk: the part is made all the same", done.returncode == 0, done.stderr)
    aegis.call("shard", "merge", "on-slow", "--out", "on-slow/merged", "-q", folder=folder)
    compared(report, "slow disk", folder, "on-slow")
