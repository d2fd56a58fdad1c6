"""Campaigns on engines that exist, and proxies behind balancers: the files that `aegis shard emit` prints, run for real, and
the configurations of examples/balancers."""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import balancers, disks, environments, slurm
from .scale_data import compared

NAME = "scale"
SHARDS = 4
CAMPAIGN = """
seed = 7
upstream = "simulator"
tasks = {{ file = "{root}/examples/tasks.jsonl", first = 16 }}
verify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}
proof.repeatable = true
[[system]]
name = "pipeline"
command = ["{{aegis}}", "example", "pipeline", "--task", "{{question}}"]
config = "{root}/examples/pipeline/aegis.toml"
timeout_s = 60
exit_codes = [0, 1]
[[plan]]
file = "{root}/plans/corrupt-number.toml"
[[plan]]
file = "{root}/plans/end-early.toml"
"""


def test(root, aegis, cache, report):
    """All of it, on one campaign; each engine must make the data set that one machine makes."""
    report.heading("scale")
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch)
        (folder / "measured.toml").write_text(CAMPAIGN.format(root=root.parents[1]))
        done = aegis.call("campaign", "measured.toml", "--out", "whole", "-q", "--jobs", 2, folder=folder, seconds=120)
        report.equal("one machine makes the campaign", done.code, 0) or print(done.stderr)
        for part in (on_slurm, on_ray, on_hyperqueue, on_kubernetes):
            attempt(report, part, aegis, cache, folder)
        attempt(report, disks.test, aegis, cache, folder)
        for balancer in balancers.ALL:
            attempt(report, balancers.test, aegis, cache, folder, balancer)


def attempt(report, part, *arguments):
    """A part that cannot be made is a failed check, and the others go on."""
    try:
        part(*arguments, report)
    except Exception as error:
        said = getattr(error, "stderr", None) or ""
        report.check(f"{part.__module__.rpartition('.')[2]}.{part.__name__}: it ends", False, f"{type(error).__name__}: {error}\n{said}")


def emitted(aegis, folder, engine, out, *options):
    """The file that is printed, kept as the line that is printed with it says; and that line."""
    done = aegis.call(
        *["shard", "emit", engine, "measured.toml", "--shards", SHARDS, "--out", out, "--jobs", 1, "--format", "json", *options],
        folder=folder,
    )
    said = json.loads(done.stdout)
    (folder / said["file"]).write_text(said["script"])
    return folder / said["file"], said["submit"]


def started(folder, out):
    """How many cells are finished, all parts together."""
    return len(list((folder / out).glob("shard-*/cells/*.json")))


def wait_for(true, seconds, what):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def on_slurm(aegis, cache, folder, report):
    place = folder / "slurm"
    place.mkdir()
    file, submit = emitted(aegis, folder, "slurm", "on-slurm")
    with slurm.cluster(place, cache, aegis.environment) as cluster:
        file = Path(shutil.copy(file, place))
        asked = cluster.call("sbatch", "--parsable", file.name)
        job = asked.stdout.strip()
        report.check("slurm: sbatch takes the file as it was printed", asked.returncode == 0 and job.isdigit(), asked.stderr)
        wait_for(lambda: started(folder, "on-slurm") >= 2, 60, "the first cells")
        running = cluster.call("squeue", "-h", "-t", "R", "-r", "-j", job, "-o", "%i %N").stdout.split("\n")
        running = [line.split() for line in running if line]
        report.check("slurm: two nodes are at work", {node for _, node in running} == set(slurm.NODES), running)
        # One is pre-empted in the middle: it is put back in line, and goes on from its directory.
        again = cluster.call("scontrol", "requeue", running[0][0])
        report.check(f"slurm: {running[0][0]} is pre-empted in the middle", again.returncode == 0, again.stderr)
        # The other is told that its time is nearly up: it ends in order, and gets in line by itself.
        cluster.call("scancel", "--batch", "--signal=TERM", running[-1][0])
        log = place / f"aegis-measured-{running[-1][0].rpartition('_')[2]}.log"
        wait_for(lambda: not cluster.call("squeue", "-h", "-j", job).stdout.strip(), 120, "the end of the array")
        said = log.read_text()
        report.check(f"slurm: {running[-1][0]}, told that its time is nearly up, ended in order, and later to its end", "RESULT  stopped" in said and said.rstrip().rpartition("\n")[2].startswith("RESULT  ok"), said)
        # The line that is printed: what follows the array.
        merge = submit.partition("--wrap=")[2].strip("'")
        done = cluster.call("sbatch", "--wait", f"--wrap={merge}", "--output=merge.log")
        report.check("slurm: the merge runs as a job", done.returncode == 0, (place / "merge.log").read_text() if (place / "merge.log").is_file() else done.stderr)
        compared(report, "slurm", folder, "on-slurm")
        again = cluster.call("sbatch", "--wait", "--array=1,3", file.name)
        report.check("slurm: a part of the array, submitted again, finds its work done", again.returncode == 0, again.stderr)
        shutil.rmtree(folder / "on-slurm" / "merged")
        cluster.call("sbatch", "--wait", f"--wrap={merge}", "--output=merge.log")
        compared(report, "slurm, again", folder, "on-slurm")


def on_ray(aegis, cache, folder, report):
    python = environments.python("scale", cache)
    file, _ = emitted(aegis, folder, "ray", "on-ray")
    scene = f"""
import runpy, sys, threading, time, pathlib
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 0, "include_dashboard": False}})
nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
cluster.wait_for_nodes()
import ray
init = ray.init
ray.init = lambda: init(address=cluster.address, log_to_driver=False)
def kill():
    out = pathlib.Path({str(folder / 'on-ray')!r})
    while len(list(out.glob("shard-*/cells/*.json"))) < 2:
        time.sleep(0.05)
    cluster.remove_node(nodes[0], allow_graceful=False)
    print("killed a node", flush=True)
    cluster.add_node(num_cpus=1)
threading.Thread(target=kill, daemon=True).start()
sys.argv = [{str(file)!r}]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    environment = aegis.environment | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
    done = subprocess.run([python, "-c", scene], cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    said = done.stdout + done.stderr[-3000:]
    report.check("ray: two nodes make the parts, one of them killed in the middle", done.returncode == 0 and "killed a node" in said, said)
    report.check("ray: all parts ended well", f"shards ended with {[0] * SHARDS}" in said, said)
    compared(report, "ray", folder, "on-ray")


def on_hyperqueue(aegis, cache, folder, report):
    python = environments.python("scale", cache)
    file, _ = emitted(aegis, folder, "hyperqueue", "on-hq")
    scene = f"""
import runpy, sys
import hyperqueue
from hyperqueue.cluster import LocalCluster, WorkerConfig
with LocalCluster(server_dir={str(folder / 'hq')!r}) as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    hyperqueue.Client = cluster.client
    runpy.run_path({str(file)!r}, run_name="__main__")
"""
    done = subprocess.run([python, "-c", scene], cwd=folder, env=aegis.environment, capture_output=True, text=True, timeout=150)
    report.check("hyperqueue: two workers make the parts", done.returncode == 0, done.stdout + done.stderr)
    compared(report, "hyperqueue", folder, "on-hq")


def on_kubernetes(aegis, cache, folder, report):
    python = environments.python("scale", cache)
    file, _ = emitted(aegis, folder, "k8s", "out", "--image", "registry/aegis:1")
    check = """
import sys, yaml, kubernetes_validate
job = yaml.safe_load(open(sys.argv[1]))
for version in ("1.33", "1.36"):
    kubernetes_validate.validate(job, version, strict=True)
job["spec"]["completionMod"] = job["spec"].pop("completionMode")
try:
    kubernetes_validate.validate(job, "1.33", strict=True)
except kubernetes_validate.ValidationError:
    print("valid, and a slip is seen")
"""
    done = subprocess.run([python, "-c", check, str(file)], env=aegis.environment, capture_output=True, text=True)
    report.check("kubernetes: the Job is valid by the schemas of 1.33 and 1.36, strictly", "valid, and a slip" in done.stdout, done.stdout + done.stderr)
