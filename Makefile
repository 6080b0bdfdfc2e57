# `make help` lists what there is. Every target does the set-up it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
ARGS ?=

.PHONY: help env train compare test test-rust test-python test-slow test-torch test-ray kubernetes check format lint types pure ns3 fuzz wheel bench crosscheck experiments curves constraints model-check clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

env: ## set up .venv: uv, dependencies, the extension
	@scripts/env

train: env ## train LunarLander-v3 through the switch (ARGS="--workers 4 ..")
	@$(BIN)/olaf train $(ARGS)

compare: env ## the same training with FIFO and with OLAF (ARGS="..")
	@$(BIN)/olaf compare $(ARGS)

# Processes of tests side by side: as many as the machine has cores.
PYTEST := $(BIN)/pytest --numprocesses auto --maxprocesses 8 --dist loadgroup

test: test-rust test-python ## the quick tests; `make check` runs all of them

test-rust: ## tests of the crates
	cargo test --workspace --quiet

test-python: env ## quick tests of the Python side, over real sockets and processes
	$(PYTEST) -m "not slow and not torch and not ray"

test-slow: env ## the tests that take many seconds each
	cargo test -p olaf-net --features portable --lib --quiet  # the poller of other systems
	$(PYTEST) -m "slow and not torch and not ray"

test-torch: ## the tests of --learner torch and of the integrations (installs 5 GB of extras)
	@scripts/env torch sb3 lightning
	OLAF_REQUIRE_TORCH=1 $(PYTEST) -m "torch and not ray"

test-ray: ## the tests on a local Ray cluster (installs the extra `ray`; minutes, gigabytes)
	@scripts/env ray rllib
	OLAF_REQUIRE_RAY=1 $(BIN)/pytest -m ray

check: format lint types pure ns3-if-possible test test-slow test-torch fuzz wheel ## everything that CI runs

format: env ## is everything formatted?
	cargo fmt --all --check
	$(BIN)/ruff format --check .

lint: env ## clippy, ruff and the layers of python/olaf; warnings are errors
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

types: env ## mypy --strict, and the stubs against the binary
	$(BIN)/mypy
	for tests in tests/*/; do MYPYPATH=python:tests/support:$$tests $(BIN)/mypy $$tests || exit 1; done
	MYPYPATH=python $(BIN)/mypy tests/conftest.py
	$(BIN)/mypy examples benchmarks
	$(BIN)/python -m mypy.stubtest olaf._olaf --ignore-disjoint-bases

pure: ## the core touches no socket, clock, thread or map order
	scripts/check-pure

ns3: ## the ns-3 module and its tests (installs Debian's libns3-dev where it may)
	@scripts/ns3

.PHONY: ns3-if-possible
ns3-if-possible:
	@scripts/ns3 --skip

FUZZ_SECONDS ?= 10
fuzz: ## every fuzz target for FUZZ_SECONDS each
	fuzz/run $(FUZZ_SECONDS)

kubernetes: ## deploy/kubernetes against the schemas of Kubernetes (fetches 100 MB)
	scripts/check-kubernetes

.PHONY: binaries
binaries: ## olaf-switch and olaf-server, for machines without Python (target/release)
	cargo build --release -p olaf-bin

wheel: env ## build the wheel, install it in an empty environment, run olaf there
	scripts/check-wheel

bench: env ## the measures, as ratios against a baseline in the same run
	scripts/bench

experiments: env ## every figure of the papers again, and experiments/README.md
	$(BIN)/olaf reproduce --all --out experiments $(ARGS)

curves: env ## the training curves of docs/training.md again (20 minutes)
	$(BIN)/python -m olaf.experiments.curves

SECONDS ?= 600
crosscheck: env ## the verifier's provers against every run of random instances, for SECONDS
	$(BIN)/python tests/verify/crosscheck.py $(SECONDS) $(ARGS)

model-check: ## every state of larger clusters of the sharing protocol (design note 018; minutes)
	cargo test --release -p olaf-sched --lib protocol::check -- --ignored --nocapture --test-threads 1

constraints: env ## pin the newest dependencies anew
	scripts/pin

clean: ## remove what was built
	rm -rf target .venv dist runs fuzz/target
