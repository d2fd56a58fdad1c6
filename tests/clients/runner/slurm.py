"""A Slurm cluster of two nodes on this machine, from Debian's packages, in a mount namespace of its own: nothing is
installed. It needs root (or a user namespace that may mount), as the path of slurmstepd is built into slurmd."""

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

from . import debian

PACKAGES = [
    *["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"],
    *["libmunge2", "libhwloc15", "libjson-c5", "libyaml-0-2", "libnuma1", "libreadline8", "libaudit1", "libbpf1"],
    *["libelf1", "libdbus-1-3", "liblz4-1"],
]
NODES = ("n1", "n2")
CONFIGURATION = """
ClusterName=aegis
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
PluginDir={plugins}
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=5
SchedulerParameters=batch_sched_delay=1,sched_interval=1,requeue_delay=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""
ENTER = """
mount -t overlay overlay -o lowerdir={programs}:/usr/sbin /usr/sbin || exit 9
"$0" -D > slurmctld.out 2>&1 &
for node in n1 n2; do slurmd -D -N $node > slurmd-$node.out 2>&1 & done
wait
"""


class Cluster:
    """The cluster, to be asked as a user asks: sbatch, squeue, scontrol."""

    def __init__(self, process, environment, folder):
        self.process, self.environment, self.folder = process, environment, folder

    def call(self, *words, seconds=120):
        return subprocess.run(
            list(map(str, words)), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=seconds
        )

    def said(self):
        return "\n".join(path.read_text()[-1500:] for path in sorted(self.folder.glob("*.out")))


@contextmanager
def cluster(folder, cache, environment):
    """Two nodes, up; ended with all that runs on them."""
    root = debian.unpacked(PACKAGES, cache)
    libraries = debian.libraries(root)
    plugins = next(root.glob("usr/lib/*/slurm-wlm"))
    libraries["LD_LIBRARY_PATH"] += f":{plugins}"
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        # In Debian these names are chosen at installation.
        link = root / "usr/sbin" / name
        if not link.exists():
            link.symlink_to(f"{name}-wlm")
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    values = {"host": socket.gethostname(), "ports": free_ports(3), "folder": folder, "plugins": plugins}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
    path = f"{root}/usr/bin:{root}/usr/sbin:{environment['PATH']}"
    environment = environment | libraries | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
    command = ["unshare", "-m", "sh", "-c", ENTER.format(programs=root / "usr/sbin"), str(root / "usr/sbin/slurmctld")]
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)
    made = Cluster(process, environment, folder)
    try:
        for _ in range(150):
            if made.call("sinfo", "-h", "-o", "%T %D").stdout.split() == ["idle", "2"]:
                break
            if process.poll() is not None:
                break
            time.sleep(0.2)
        else:
            raise RuntimeError(f"two nodes did not come up within 30 s:\n{made.said()}")
        if process.poll() is not None:
            raise RuntimeError(f"the cluster ended with {process.returncode}: it needs to mount, as root does\n{made.said()}")
        yield made
    finally:
        made.call("scancel", "--user=root")
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
