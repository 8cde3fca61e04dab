#!/usr/bin/env bash
# Run tests or benchmarks on a machine with GPUs; records are appended to bench/results and copied to a folder of logs.
#
#   bench/device.sh tests LOGS      the whole suite with --require gpu
#   bench/device.sh searches LOGS   one GPU: scales 20 to 24 and a grid, random roots, frontier and sweep
#   bench/device.sh forests LOGS    one GPU: components and spanning forests, RMAT and SSCA2 graphs
#   bench/device.sh parts LOGS      one GPU: preparations of a forest
#   bench/device.sh wide LOGS       one GPU: a forest of a graph of more than 2^32 edges
#   bench/device.sh compact LOGS N  N GPUs: scale 28, and the largest graph that they hold, in the compact layout
#   bench/device.sh papers LOGS     one GPU: the five papers, with road maps of the folder ROADS if there is one; all
#                                   GPUs under LocalCUDACluster: the first paper's sweeps
#   bench/device.sh costs LOGS      one GPU: what the choice by measured rates gains
#   bench/device.sh sanitize LOGS   one GPU: every algorithm under the tools of compute-sanitizer
#   bench/device.sh counters LOGS   one GPU: hardware counters of searches that miss their goals
#   bench/device.sh energy LOGS     one GPU: MTEPS per watt of searches, scales 20 to 28
#   bench/device.sh multi LOGS N    N GPUs under LocalCUDACluster: scale 26, components and forests to scale 29
#   bench/device.sh scaling LOGS N  1, 2, 4 ... N GPUs: scales 24 to 26 and a grid, then docs/scaling.md
#
# The extras cuda13 and test must be installed; this script installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1 logs=$2 gpus=${3:-1}
mkdir -p "$logs"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1

run() { python3 bench/run.py "$@" --backend cuda ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee -a "$logs/$what.log"; }

case $what in
  tests)
    # PYTEST_ARGS may spread them over cores: -n 12, with pytest-xdist.
    # shellcheck disable=SC2086
    python3 -m pytest -q --tier ci --require gpu ${PYTEST_ARGS:-} 2>&1 | tee "$logs/tests.log"
    ;;
  searches)
    run rmat20 rmat22 rmat24 uni24 --method frontier --method sweep
    run grid4k --sources 8
    ;;
  forests)
    run rmat16 rmat20 rmat21 rmat22 rmat24 uni24 grid4k ssca2-16 ssca2-21 ssca2-24 --algorithm components --algorithm msf
    ;;
  parts)
    python3 bench/forest_parts.py rmat22 ssca2-21 --backend cuda ${COMMIT:+--commit "$COMMIT"} 2>&1 |
      tee "$logs/parts.log"
    ;;
  wide)
    run rmat28-ef17 --algorithm msf --sources 3 --builds 1
    ;;
  compact)
    run rmat28 --ranks "$gpus" --layout compact --sources 4 --builds 1
    # 2^34 edges a GPU: 30 on one, 31 on two, 32 on four.
    scale=30
    for ((n = 2; n <= gpus; n *= 2)); do scale=$((scale + 1)); done
    run "rmat$scale" --ranks "$gpus" --layout compact --weights none --algorithm bfs --sources "${SOURCES:-4}" --builds 1
    ;;
  papers)
    python3 bench/five_papers.py --backend cuda --record ${ROADS:+--roads "$ROADS"} ${COMMIT:+--commit "$COMMIT"} 2>&1 |
      tee "$logs/papers.log"
    ;;
  costs)
    python3 bench/cost_model.py rmat20 rmat22 rmat24 uni24 grid4k ${COMMIT:+--commit "$COMMIT"} 2>&1 |
      tee "$logs/costs.log"
    ;;
  sanitize)
    python3 bench/sanitize.py "$logs" ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee "$logs/sanitize.log"
    ;;
  counters)
    python3 bench/counters.py bfs:{rmat20,rmat22,uni24,grid4k} sssp:{rmat20,rmat22,uni24} --logs "$logs" \
      ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee "$logs/counters.log"
    ;;
  energy)
    # shellcheck disable=SC2086
    python3 bench/energy.py ${GRAPHS:-} ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee "$logs/energy.log"
    ;;
  multi)
    # With one ROOT_SEED for all numbers of ranks, bench/run.py ends if their digests differ.
    run rmat26 --ranks "$gpus" --method frontier --method sweep --root-seed "${ROOT_SEED:-$RANDOM}" --sources 8
    for scale in 26 27 28 29; do
      run "rmat$scale" --ranks "$gpus" --algorithm components --algorithm msf --sources 3 --builds 1
    done
    ;;
  scaling)
    # Ranks 0: mgraph chooses the number of ranks.
    ranks=1
    for ((n = 2; n <= gpus; n *= 2)); do ranks+=,$n; done
    # shellcheck disable=SC2086
    python3 bench/scaling.py ${GRAPHS:-grid4k rmat24} --scales "${SCALES:-24:26}" --ranks "$ranks,0" --sources 4 \
      --backend cuda ${COMMIT:+--commit "$COMMIT"} 2>&1 | tee "$logs/scaling.log"
    cp docs/scaling* "$logs/"
    ;;
  *)
    sed -n '2,19p' "$0" >&2
    exit 2
    ;;
esac
cp bench/results/*.jsonl "$logs/" 2>/dev/null || true
