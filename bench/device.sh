#!/usr/bin/env bash
# On a machine with GPUs: tests, then benchmarks; results go to bench/results and to a folder of logs.
#
#   bench/device.sh tests LOGS      the whole suite with --require gpu
#   bench/device.sh single LOGS     one GPU: scales 20 to 24, 16 fresh roots each, frontier and sweep; components
#   bench/device.sh multi LOGS N    N GPUs under LocalCUDACluster: scale 26, frontier and sweep against one rank
#
# Everything that mgraph[cuda13,test] names must be installed; nothing is installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1 logs=$2 gpus=${3:-1}
mkdir -p "$logs"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1

run() { python3 bench/run.py "$@" --backend cuda ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee -a "$logs/bench.log"; }

case $what in
  tests)
    # PYTEST_ARGS may spread them over cores: -n 12 --ignore ..., with pytest-xdist.
    # shellcheck disable=SC2086
    python3 -m pytest -q --require gpu ${PYTEST_ARGS:-} 2>&1 | tee "$logs/tests.log"
    ;;
  single)
    run rmat20 rmat22 rmat24 uni24 --method frontier --method sweep
    run grid4k --sources 4
    run rmat20 rmat22 rmat24 uni24 grid4k --algorithm components
    ;;
  multi)
    # The same roots on one rank and on all: bench/run.py ends if the digests do not agree.
    seed=$RANDOM
    for ranks in 1 "$gpus"; do
      run rmat26 --ranks "$ranks" --method frontier --method sweep --root-seed "$seed"
    done
    ;;
  *)
    sed -n '2,8p' "$0" >&2
    exit 2
    ;;
esac
cp bench/results/*.jsonl "$logs/" 2>/dev/null || true
