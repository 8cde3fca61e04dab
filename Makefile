# What CI runs is what you run: .ci/run and the workflow call these targets and nothing else.
PYTHON ?= python3
# Where the tools of that Python are (clang-format and shellcheck are programs, not modules).
BIN := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
CUDA_FILES := $(shell find mgraph tests bench -name '*.cu' -o -name '*.cuh' -o -name '*.h' \
	-o -name '*.c' -o -name '*.cc' -o -name '*.cpp')
SHELL_FILES := .ci/run bench/device.sh $(wildcard deploy/*.sh deploy/*/*.sbatch)

.PHONY: help check format test test-ci test-all soak deploy gpu gpu-sanitize bench papers docs release

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

check:  ## style, types, spelling, sizes and layers
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CUDA_FILES)
	$(PYTHON) -m mypy
	$(BIN)/codespell
	$(BIN)/shellcheck $(SHELL_FILES)
	$(PYTHON) tests/repo/budgets.py

format:  ## rewrite the files as `check` wants them
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(BIN)/clang-format -i $(CUDA_FILES)

test:  ## the quick tests, some minutes
	$(PYTHON) -m pytest

test-ci:  ## all tests of CI, some 25 minutes
	$(PYTHON) -m pytest --tier ci

# The folder is named: pytest takes a log that exists for a folder of tests, and would not read their options.
test-all:  ## hours of random graphs, interleavings and faults; recorded in bench/results
	$(PYTHON) -m pytest tests --tier all -o timeout=7200 -o faulthandler_timeout=7300 \
		--require slurm --require sshd --require mount --require cgroup --require operator \
		--run-log bench/results/suite.jsonl --fault-log bench/results/faults.jsonl

SOAK ?= --minutes 10
soak:  ## random jobs under random faults for ten minutes, or as SOAK says; recorded in bench/results
	PYTHONPATH=tests/support $(PYTHON) -m faults.soak $(SOAK) --record bench/results/soak.jsonl

# Docker's take minutes of downloads, SLURM's a minute each for two nodes on two cores.
deploy:  ## the recipes of deploy/ on a real SLURM and SSH server; recorded in bench/results
	$(PYTHON) -m pytest -n 0 --tier all --require slurm --require sshd tests/repo/test_deploy*.py \
		--run-log bench/results/deploy.jsonl

gpu:  ## all tests of CI on a GPU, where a skipped GPU test is a failure
	$(PYTHON) -m pytest --tier ci --require gpu

# A sanitized kernel runs some hundred times slower: the clocks that end a hung test are set accordingly.
# The twins are launched on small arguments; a whole search would take hours.
SANITIZED := tests/repo/test_twins.py --tier ci -m gpu --require gpu --sanitize -o timeout=1800 -o faulthandler_timeout=2000
gpu-sanitize:  ## every step kernel under compute-sanitizer on a GPU: memory errors, then races
	compute-sanitizer --tool memcheck --error-exitcode 9 --target-processes all $(PYTHON) -m pytest $(SANITIZED)
	compute-sanitizer --tool racecheck --error-exitcode 9 --target-processes all $(PYTHON) -m pytest $(SANITIZED)

bench:  ## measure, and append to bench/results
	$(PYTHON) bench/run.py rmat18 rmat20 grid1k --backend cpu
	$(PYTHON) bench/report.py

PAPERS ?= --quick
papers:  ## the five papers again, small graphs; PAPERS="--backend cuda --record --roads FOLDER" for all
	$(PYTHON) bench/five_papers.py $(PAPERS) --figures build/papers

# That their paths exist and their examples run is tested by tests/repo/test_docs.py.
docs:  ## the site, into build/docs
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs build/docs

release:  ## build sdist and wheel, check them, print the notes; CONFIRM=1 also tags and uploads
	$(PYTHON) tests/repo/release.py
