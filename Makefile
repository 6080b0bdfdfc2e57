# `make help` lists what there is. Every target does the set-up it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
ARGS ?=
# `make check ALL=1` runs what is left out otherwise (scripts/check).
ALL ?=
# The checks of models, and the test that writes olaf.h anew. `make test` has them not: they take a newcomer a minute to build.
MODELS := --features olaf-sched/model,olaf-engine/model,olaf-ffi/header

.PHONY: help env train compare test test-browser test-rust test-python test-slow test-torch test-torch-peers test-ray kubernetes check format lint types pure ns3 fuzz wheel bench bench-sum crosscheck experiments curves constraints model-check clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

env: ## set up .venv: uv, dependencies, the extension
	@scripts/env

.PHONY: env-for-tests
env-for-tests:
	@scripts/env --tests

train: env ## train LunarLander-v3 through the switch (ARGS="--workers 4 ..")
	@$(BIN)/olaf train $(ARGS)

compare: env ## train with FIFO, OLAF and two baselines, and compare (ARGS="..")
	@$(BIN)/olaf compare $(ARGS)

# Runs tests in parallel: three processes for two cores, because many tests wait for a deadline.
PYTEST := PYTEST_XDIST_AUTO_NUM_WORKERS=$$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)) \
	$(BIN)/pytest --numprocesses auto --maxprocesses 8 --dist loadgroup

# The dependencies of Python come while the crates compile; then the tests of both run side by side.
test: ## run the quick tests; `make check` runs all tests
	@scripts/env --dependencies & environment=$$!; \
	cargo test --workspace --quiet --no-run && wait $$environment
	@scripts/env --tests
	@mkdir -p target; $(MAKE) --no-print-directory test-rust >target/test-rust.log 2>&1 & rust=$$!; \
	$(MAKE) --no-print-directory test-python; python=$$?; \
	wait $$rust; rust=$$?; cat target/test-rust.log; exit $$((rust | python))

test-rust: ## run the tests of the crates, with a quarter of the random cases
	OLAF_QUICK_TESTS=1 cargo test --workspace --quiet

test-python: env-for-tests ## run the quick Python tests, over real sockets and processes
	OLAF_CARGO_TESTS=--workspace $(PYTEST) -m "not slow and not torch and not ray and not wireshark and not browser"

test-rust-all: ## run the tests of the crates with all random cases, and those of optional features
	cargo test --workspace $(MODELS) --quiet
	scripts/portable $(MODELS)

TIMES ?= 20
.PHONY: search
search: ## run TIMES=20 times as many random cases of the crates' tests, optimised but with all assertions: many minutes
	OLAF_TESTS_TIMES=$(TIMES) cargo test --release --workspace --config profile.release.debug-assertions=true

test-slow: test-rust-all test-slow-python test-alone ## run the tests that take many seconds each, and all random cases

.PHONY: test-build test-python-all test-rust-all test-slow test-slow-python test-alone
# What tests need, in one build: the dependencies of Python come while the crates compile.
test-build:
	@scripts/env --dependencies & environment=$$!; \
	cargo test --workspace $(MODELS) --quiet --no-run && wait $$environment
	@OLAF_MODELS=1 scripts/env --tests

# Quick and slow ones in one go: no process waits for the end of the quick ones.
test-python-all: env-for-tests
	OLAF_CARGO_TESTS="--workspace $(MODELS)" $(PYTEST) --durations 20 -m "not alone and not torch and not ray and not wireshark and not browser"

test-slow-python: env-for-tests
	$(PYTEST) -m "slow and not alone and not torch and not ray and not wireshark and not browser"

# They compare two rates: nothing else may take the cores.
test-alone: env-for-tests
	$(BIN)/pytest -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)

test-torch: ## run the tests of --learner torch and the integrations (installs 5 GB of extras)
	@scripts/env --tests torch sb3 lightning
	OLAF_REQUIRE_TORCH=1 $(PYTEST) -m "torch and not ray"

test-torch-peers: ## run PyTorch's own distributed tests with the backend olaf, beside gloo (minutes)
	@scripts/env --tests torch
	@command -v uv >/dev/null && uv=uv || uv="python3 -m uv"; [ -d target/torch-peers/expecttest ] || \
		$$uv pip install --quiet --python $(BIN)/python --target target/torch-peers expecttest==0.3.0
	PYTHONPATH=target/torch-peers OLAF_TORCH_PEERS=1 $(BIN)/pytest -s tests/distributed/test_torch_peers.py

test-ray: ## run the tests on a local Ray cluster (installs the extra `ray`; minutes, gigabytes)
	@scripts/env --tests ray rllib
	OLAF_REQUIRE_RAY=1 $(BIN)/pytest -m ray

.PHONY: dissector wireshark
dissector: ## write wireshark/olaf.lua and vectors/wire/olaf.pcap anew
	OLAF_WRITE_DISSECTOR=1 cargo test -p olaf-wire --quiet --test dissector

wireshark: env-for-tests ## test the dissector with tshark (installs Debian's tshark where it is missing)
	@scripts/tshark
	$(BIN)/pytest tests/wireshark -m wireshark

test-browser: env-for-tests ## show the status page in a headless browser (may install Debian's chromium)
	@scripts/browser
	$(BIN)/pytest tests/browser -m browser

.PHONY: test-browser-if-possible
test-browser-if-possible: env-for-tests
	@scripts/browser --skip
	$(BIN)/pytest tests/browser -m browser

.PHONY: deploy
deploy: env-for-tests ## check the systemd units and the Containerfile of deploy/ (may install Debian's systemd)
	@scripts/check-deploy

# Three stages (scripts/check). The tests that wait for deadlines run beside the jobs that only compute.
check: ## run everything that CI runs, and say how long each part took (ALL=1: also what has not changed)
	@scripts/check $(if $(ALL),--all) test-build \
		"test-python-all test-browser-if-possible wireshark test-torch \
		| format lint types pure deploy test-rust-all ns3-if-possible build-budget rtl-if-possible fuzz-changed bench-quick budgets-if-possible wheel" \
		test-alone

format: dependencies ## check the formatting
	cargo fmt --all --check
	$(BIN)/ruff format --check .

.PHONY: dependencies
dependencies:
	@scripts/env --dependencies

lint: env-for-tests ## run clippy and ruff, check the layers of python/olaf and ARCHITECTURE.md; warnings are errors
	$(BIN)/ruff check .
	scripts/check-tests
	scripts/check-architecture
	$(BIN)/lint-imports --no-logo
	cargo clippy --workspace --all-targets $(MODELS) --quiet -- -D warnings

types: env-for-tests ## run mypy --strict; compare the stubs with the binary
	$(BIN)/mypy
	for tests in tests/*/; do MYPYPATH=python:tests/support:$$tests $(BIN)/mypy $$tests || exit 1; done
	MYPYPATH=python $(BIN)/mypy tests/conftest.py
	$(BIN)/mypy examples benchmarks
	$(BIN)/python -m mypy.stubtest olaf._olaf --ignore-disjoint-bases

pure: ## check that the core uses no socket, clock, thread or map order, and that its kernels are vectors
	scripts/check-pure
	scripts/check-kernels

ns3: ## build and test the ns-3 module (may install Debian's libns3-dev)
	@scripts/ns3

.PHONY: ns3-if-possible
ns3-if-possible:
	@OLAF_BUILD=scripts/release scripts/ns3 --skip

FUZZ_SECONDS ?= 10
fuzz: ## run every fuzz target for FUZZ_SECONDS
	fuzz/run $(FUZZ_SECONDS)

.PHONY: fuzz-changed
fuzz-changed:
	fuzz/run $(if $(ALL),,--changed) $(FUZZ_SECONDS)

kubernetes: ## check deploy/kubernetes against the Kubernetes schemas (fetches 100 MB)
	scripts/check-kubernetes

.PHONY: rtl rtl-long
# A test of the accelerator asks the compiled engine.
rtl: env-for-tests ## check the hardware in rtl/: lint, tests, co-simulation, proofs, cell counts (may install packages)
	rtl/run --all

.PHONY: rtl-if-possible
rtl-if-possible: env-for-tests
	@rtl/run --skip $(if $(ALL),--all)

rtl-long: env-for-tests ## the same, with a thousand million random sums and ten million cycles beside the engine
	rtl/run --long

.PHONY: binaries
binaries: ## build olaf-switch and olaf-server, for machines without Python (target/release)
	cargo build --release -p olaf-bin

wheel: env-for-tests ## build the wheel, install it in an empty environment, run olaf there
	scripts/check-wheel

.PHONY: build-budget
build-budget: ## check what the release build costs, in time of the processor and bytes
	@scripts/build-budget

bench: env ## run the benchmarks, each as a ratio to a baseline in the same run
	scripts/bench

.PHONY: bench-quick
bench-quick: ## see that each benchmark of the crates runs: once, shortened, in the profile of the tests
	OLAF_QUICK_BENCHES=1 cargo test --workspace $(MODELS) --quiet --bench '*'

.PHONY: budgets budgets-if-possible
budgets: ## count the instructions of the switches' work against the table (WRITE=1: write it anew; may install Debian's valgrind)
	@scripts/valgrind
	@scripts/budgets $(if $(WRITE),--write)

budgets-if-possible:
	@scripts/valgrind --skip && scripts/budgets || [ $$? = 3 ]

bench-sum: ## measure all-reduce and broadcast from torch against gloo (installs `torch`; ARGS="..")
	@scripts/env torch
	scripts/bench-sum $(ARGS)

experiments: env ## measure every figure of the papers again, and write experiments/README.md
	$(BIN)/olaf reproduce --all --out experiments $(ARGS)

curves: env ## measure the training curves of docs/training.md again (7 minutes)
	$(BIN)/python -m olaf.experiments.curves --processes 2

SECONDS ?= 600
crosscheck: env ## check the verifier's provers on random instances, for SECONDS
	$(BIN)/python tests/verify/crosscheck.py $(SECONDS) $(ARGS)

model-check: ## check every state of larger clusters and tables, and 4,096 workers of ATP (minutes)
	cargo test --release -p olaf-sched --features model --lib protocol::check -- --ignored --nocapture --test-threads 1
	cargo test --release -p olaf-engine --features model --lib blocks::pool::check -- --ignored --nocapture --test-threads 1
	cargo test --release -p olaf-engine --features model --lib blocks::hashed::check -- --ignored --nocapture --test-threads 1
	cargo test --release -p olaf-sim --test all atp::levels::four_thousand -- --ignored --nocapture

.PHONY: chaos
CHAOS ?= 1000
CHAOS_SEED ?= 1
REAL_CHAOS ?= 50
chaos: env-for-tests ## kill, stop and cut off parties, CHAOS times in simulated networks and REAL_CHAOS times in real ones (minutes)
	OLAF_CHAOS=$(CHAOS) OLAF_CHAOS_SEED=$(CHAOS_SEED) cargo test -p olaf-sim --test all chaos:: -- --nocapture
	OLAF_REAL_CHAOS=$(REAL_CHAOS) OLAF_CHAOS_SEED=$(CHAOS_SEED) $(BIN)/pytest -s tests/reduce/test_real_chaos.py

.PHONY: soak
soak: env ## two jobs whose workers come and go, for SECONDS: does the memory of switch and server stay flat?
	$(BIN)/python benchmarks/soak.py $(SECONDS)

constraints: env ## pin the newest versions of the dependencies
	scripts/pin

clean: ## remove all build output
	rm -rf target .venv dist runs fuzz/target rtl/.venv rtl/build rtl/cosim/target
