#!/bin/bash
# A campaign in @SHARDS@ shards. Written by `aegis shard emit slurm`; nothing has been started. Read it, add what your cluster
# wants (partition, account, time, memory), keep it as FILE, and:
#   sbatch FILE
#SBATCH --job-name=@NAME@
#SBATCH --array=0-@LAST@
#SBATCH --cpus-per-task=@JOBS@
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=@NAME@-%a.log
#SBATCH --signal=B:TERM@60

# Of how many: a part of the array that is submitted again (`sbatch --array=3,5 FILE`) is still a part of all.
export AEGIS_SHARDS=@SHARDS@

# The shard's directory must be on a disk that all nodes see: a shard that starts again goes on from it, on whatever node.
@COMMAND@ --shard auto --quiet &
shard=$!
# A minute before the time limit, and at a pre-emption: end it in order, and get in line again.
trap 'kill -TERM "$shard"' TERM
wait "$shard"
code=$?
if kill -0 "$shard" 2>/dev/null; then
    wait "$shard"
    code=$?
fi
if [ "$code" = 143 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
