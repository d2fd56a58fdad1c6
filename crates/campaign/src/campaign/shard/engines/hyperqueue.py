"""A campaign in @SHARDS@ shards on HyperQueue. Written by `aegis shard emit hyperqueue`; nothing has been started.

Read it, keep it as FILE, and with a server and workers at hand (`hq server start`; `hq worker start` or `hq alloc add`), with
HyperQueue's Python package: `python FILE`.
"""

import subprocess
import sys

from hyperqueue import Client, Job
from hyperqueue.ffi.protocol import ResourceRequest

SHARDS = @SHARDS@
COMMAND = @COMMAND_JSON@
MERGE = @MERGE_JSON@

job = Job(name="@NAME@", max_fails=SHARDS)
for index in range(SHARDS):
    # A shard whose worker is lost is tried elsewhere and goes on from its directory, which all workers must see.
    command = [*COMMAND, "--quiet", "--shard", f"{index}/{SHARDS}"]
    job.program(command, name=f"shard-{index}", resources=ResourceRequest(cpus=@JOBS@), crash_limit=5)
client = Client()
client.wait_for_jobs([client.submit(job)], raise_on_error=False)
sys.exit(subprocess.run(MERGE).returncode)
