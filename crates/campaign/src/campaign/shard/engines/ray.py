"""A campaign in @SHARDS@ shards on a Ray cluster. Written by `aegis shard emit ray`; nothing has been started.

Read it, keep it as FILE, and on a machine of the cluster: `python FILE`, or `ray job submit -- python FILE`.
"""

import ctypes
import signal
import subprocess
import sys
import time

import ray

SHARDS = @SHARDS@
COMMAND = @COMMAND_JSON@
MERGE = @MERGE_JSON@
# What a second try would not change: done, out of budget, a damaged recording.
FINAL = (0, 4, 5)


def end_with_the_worker():
    """A shard is ended where Ray's worker is: else it would hold the lock of its directory while Ray tries it elsewhere."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


# A shard whose node is lost is tried elsewhere and goes on from its directory, which all nodes must see.
@ray.remote(num_cpus=@JOBS@, max_retries=10, retry_exceptions=True, scheduling_strategy="SPREAD")
def shard(index):
    done = subprocess.run([*COMMAND, "--quiet", "--shard", f"{index}/{SHARDS}"], preexec_fn=end_with_the_worker)
    if done.returncode not in FINAL:
        time.sleep(2)
        raise RuntimeError(f"shard {index} of {SHARDS} ended with {done.returncode}")
    return done.returncode


ray.init()
codes = ray.get([shard.remote(index) for index in range(SHARDS)])
print("shards ended with", codes)
sys.exit(subprocess.run(MERGE).returncode)
