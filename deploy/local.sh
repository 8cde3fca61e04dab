#!/usr/bin/env bash
# Start a scheduler and workers on this host, run a smoke job on them, and stop everything again.
#
#   deploy/local.sh [--workers N] [--scale S] [--backend auto|cpu|cuda] [-- COMMAND ...]
#
# --workers  number of workers (default: one a GPU, or two CPU workers without GPUs)
# --scale    scale of the smoke job, `mgraph graph500 --scale S` (default 16)
# --backend  cuda starts `dask cuda worker`, cpu starts `dask worker`; auto chooses cuda if there is a GPU
# COMMAND    runs instead of the smoke job, with the scheduler file in $MGRAPH_SCHEDULER_FILE
#
# PYTHON is the interpreter that has mgraph (default: python3). The exit code is the job's.
set -euo pipefail

python=${PYTHON:-python3}
workers=
scale=16
backend=auto
command=()

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
        --workers | --scale | --backend) [ $# -ge 2 ] || usage 2 >&2 ;;&
        --workers) workers=$2; shift 2 ;;
        --scale) scale=$2; shift 2 ;;
        --backend) backend=$2; shift 2 ;;
        --) shift; command=("$@"); break ;;
        -h | --help) usage 0 ;;
        *) echo "unknown option $1" >&2; usage 2 >&2 ;;
    esac
done

# The devices that this job may use, one word each: those in CUDA_VISIBLE_DEVICES, or all.
devices=()
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
    IFS=, read -r -a devices <<<"$CUDA_VISIBLE_DEVICES"
else
    mapfile -t devices < <(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null)
fi

case $backend in
    auto) if [ ${#devices[@]} -gt 0 ]; then backend=cuda; else backend=cpu; fi ;;
    cpu | cuda) ;;
    *) echo "--backend $backend is not one of auto, cpu, cuda" >&2; exit 2 ;;
esac
if [ -z "$workers" ]; then
    if [ "$backend" = cuda ]; then workers=${#devices[@]}; else workers=2; fi
fi
[[ $workers =~ ^[1-9][0-9]*$ ]] || { echo "--workers $workers is not a positive number" >&2; exit 2; }
if [ "$backend" = cuda ] && [ "$workers" -gt ${#devices[@]} ]; then
    echo "--workers $workers: there are ${#devices[@]} GPUs, and each worker needs one of its own" >&2
    exit 2
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/mgraph-local.XXXXXX")
file=$folder/scheduler.json
export DASK_TEMPORARY_DIRECTORY=$folder
mkdir "$folder/groups"

# The job and each server lead process groups of their own. So Ctrl-C reaches this script alone, which ends the job,
# then the workers, then the scheduler, and kills processes that are left after ten seconds. Each group appends its
# number to a list before it starts anything, and does not start if the list is gone: whenever this script ends, the
# list is complete.
# shellcheck disable=SC2016
leader=(setsid bash -c 'echo "$$" >>"$0" && exec "$@"' "$folder/groups/list")
start() { "${leader[@]}" "$@" >>"$folder/log" 2>&1 & }

signal_group() { kill "-$1" -- "-$2" 2>/dev/null; }

# End all groups, the newest first, and remove the folder.
end_groups() {
    local group
    mv "$1/groups" "$1/ending" || true
    while read -r group; do
        signal_group TERM "$group" || continue
        for _ in {1..100}; do
            signal_group 0 "$group" || break
            sleep 0.1
        done
        signal_group KILL "$group" || true
    done < <(tac "$1/ending/list")
    rm -rf "$1"
}
export -f signal_group end_groups

# The guard ends the groups if this script is killed: it runs in a session of its own and waits for the script's end.
# shellcheck disable=SC2016
setsid bash -c 'tail --pid="$1" -f /dev/null; [ ! -d "$2" ] || end_groups "$2"' guard "$$" "$folder" \
    </dev/null &>/dev/null &
guard=$!

stop() {
    local status=$?
    trap - EXIT
    trap '' INT TERM
    if [ "$status" -ne 0 ]; then
        echo "the job ended with $status; the end of the cluster's log:" >&2
        tail -n 20 "$folder/log" >&2 || true
    fi
    end_groups "$folder"
    signal_group TERM "$guard" || true
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Loopback only, for HTTP too: anyone with access to a port of Dask can run code as this user. Without a dashboard
# address the HTTP server listens on all interfaces, even with --no-dashboard.
loopback=(--host 127.0.0.1 --no-dashboard --dashboard-address 127.0.0.1:0)
start "$python" -m dask scheduler "${loopback[@]}" --port 0 --scheduler-file "$file"

# No memory limit: Dask does not know the memory of graphs, and mgraph plans it against the free memory of the host.
shared=("${loopback[@]}" --scheduler-file "$file" --memory-limit 0)
if [ "$backend" = cuda ]; then
    visible=$(IFS=,; echo "${devices[*]:0:workers}")
    export CUDA_VISIBLE_DEVICES=$visible
    start "$python" -m dask cuda worker "${shared[@]}"
else
    start "$python" -m dask worker "${shared[@]}" --nworkers "$workers" --nthreads 1
fi

# In the background, like the job: so a signal is handled at once and not after it, and the guard ends it too.
"${leader[@]}" "$python" - "$file" "$workers" <<'WAIT' &
import pathlib
import sys
import time

from distributed import Client

file, workers, deadline_s = pathlib.Path(sys.argv[1]), int(sys.argv[2]), time.monotonic() + 60
while not file.exists() and time.monotonic() < deadline_s:
    time.sleep(0.1)
if not file.exists():
    sys.exit("the scheduler did not start within 60 s")
with Client(scheduler_file=str(file), timeout=60) as client:
    client.wait_for_workers(workers, timeout=60)
WAIT
wait $!
echo "$workers $backend workers are up"

if [ ${#command[@]} -eq 0 ]; then
    command=("$python" -m mgraph graph500 --scale "$scale" --scheduler-file "$file")
fi
MGRAPH_SCHEDULER_FILE=$file "${leader[@]}" "${command[@]}" &
wait $!
