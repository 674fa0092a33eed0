# The verbs of the house; `make help` lists them. Set-up is incremental: every step leaves a stamp in .make/.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

UV_VERSION := 0.13.9
BIN := .venv/bin
UV := VIRTUAL_ENV=.venv $(BIN)/uv
RUST := $(shell find core journal engine bridge loadgen -name '*.rs' -not -path '*/target/*' -not -path '*/tests/*' 2>/dev/null) \
        Cargo.toml Cargo.lock $(wildcard */Cargo.toml)
CRATES := -p godwit-core -p godwit-journal -p godwit-engine -p godwit-loadgen -p godwit-mutants
PYTHON_FOLDERS := server tests benchmarks protocol examples docs pipelines tools
SPARK := .venv-pipelines/bin
SPARK_TEST := $(SPARK)/pytest -c pipelines/pyproject.toml -q
KILLS := tests/pipelines/test_kill.py
PACKED := --config-settings-package pyspark:--build-option=--compression=stored # 430 MB of jars: packed to be unpacked at once
ARGS ?=
PARALLEL ?= -n 4 --dist worksteal # on two cores too: a test mostly waits
FUZZ_SECONDS ?= 60
SEEDS ?=
TARGET ?=
LONG ?=

export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
export UV_NO_PROGRESS := 1
# Each worker of Spark is a process that loads pyspark: 0.6 s of processor, and 1.9 where it has to be compiled, as it is each time
# where nothing may be written beside it.
export UV_COMPILE_BYTECODE := 1

.PHONY: help setup run pipeline picture fmt check check-fast test test-all test-others test-long test-rust test-python test-pipelines test-javascript fuzz wheel bench mutants docs generate generate-tables ci clean tools-run tools-check tools-test tools-spark

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .make/engine .make/console .make/node_modules ## install what is needed and build the engine (only what has changed)

run: .make/engine .make/console ## start a node on the default ports with this machine's live telemetry
	@exec $(BIN)/godwit serve --demo $(ARGS)

fmt: .make/venv ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix-only $(PYTHON_FOLDERS)
	$(BIN)/ruff format --quiet $(PYTHON_FOLDERS)

check: tools-check .make/engine .make/node_modules .make/pipelines ## formatting, lints, types, layers, generated code, the house's rules, the docs' links
	cargo fmt --all --check
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check --quiet $(PYTHON_FOLDERS)
	$(BIN)/ruff format --quiet --check $(PYTHON_FOLDERS)
	$(BIN)/mypy
	cd pipelines && ../$(SPARK)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python protocol/generate.py --check
	cd clients/javascript && npm run --silent check
	$(BIN)/pytest -q tests/architecture

check-fast: tools-test .make/engine .make/node_modules ## check without Java, Spark and the lints of Rust, in about a minute
	cargo fmt --all --check
	$(BIN)/ruff check --quiet $(PYTHON_FOLDERS)
	$(BIN)/ruff format --quiet --check $(PYTHON_FOLDERS)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python protocol/generate.py --check
	cd clients/javascript && npm run --silent check
	$(BIN)/pytest -q tests/architecture

# Side by side, because each leaves cores idle now and then. Everything but the Rust tests waits for the engine, so that they take a
# little less than their share: with much less (5 instead of 2) they were the last to end.
test: tools-test tools-spark ## the fast tests
	@.ci/beside "nice -n 2 $(MAKE) test-rust" "$(MAKE) test-others"

test-all: tools-test tools-spark ## every test, the long ones too
	@.ci/beside "nice -n 2 $(MAKE) test-rust SEEDS=500 && $(MAKE) fuzz" "$(MAKE) test-others LONG=1"

test-others: .make/venv
	@.ci/beside "$(MAKE) .make/console .make/node_modules .make/pipelines .make/chromium $(if $(LONG),.make/promtool .make/delta)" "$(MAKE) .make/engine"
	@.ci/beside "$(MAKE) test-javascript" "$(MAKE) test-pipelines" "$(MAKE) test-python"

test-rust: tools-test
	GODWIT_SEEDS=$(SEEDS) cargo test --quiet --locked $(CRATES)

test-javascript: tools-test .make/engine .make/node_modules
	cd clients/javascript && LONG=$(LONG) npm run --silent test

# The rules of the house are `make check`'s. The long tests come after the others, also where one of those has failed.
test-python: tools-test .make/engine .make/console .make/chromium .make/node_modules
	@failed=0; $(BIN)/pytest -q -m "not long" $(if $(LONG),,--ignore=tests/architecture) $(PARALLEL) $(ARGS) || failed=1; \
	$(if $(LONG),$(MAKE) test-long || failed=1;) exit $$failed

# Autobahn holds the engine's WebSocket alone: the example.
test-long: .make/engine .make/promtool
	cargo build --quiet --locked -p godwit-engine --example echo
	@failed=0; $(BIN)/pytest -q -m long -n 2 --dist worksteal $(ARGS) || failed=1; \
	$(BIN)/python -X dev -W error -m pytest -q -W error::pytest.PytestUnraisableExceptionWarning tests/faults/test_scenarios.py || failed=1; exit $$failed

# Of the long tests those that kill jobs mostly wait for Spark to start, and run beside the others.
test-pipelines: tools-spark .make/pipelines .make/engine
	@$(if $(LONG),.ci/beside "$(SPARK_TEST) $(KILLS)" "$(SPARK_TEST) tests/pipelines --ignore=$(KILLS) $(ARGS)",$(SPARK_TEST) tests/pipelines -m "not long" $(ARGS))

fuzz: tools-test ## a random pass of FUZZ_SECONDS on every parser (or on TARGET alone), a report only where one fails
	BOLERO_RANDOM_ITERATIONS=18446744073709551615 BOLERO_RANDOM_TEST_TIME_MS=$(FUZZ_SECONDS)000 \
		cargo test --quiet --locked -p godwit-fuzz --test targets $(TARGET)

wheel: .make/venv ## build the packages that pip installs into dist/: the server with its console, the client, the pipelines
	@deploy/wheel dist >/dev/null
	@$(BIN)/uv build --quiet --wheel --out-dir dist clients/python
	@$(BIN)/uv build --quiet --wheel --out-dir dist pipelines
	@ls dist/*.whl

PIPELINE := .make/pipeline
pipeline: .make/engine .make/console .make/pipelines ## a node under faults for a minute; its journal landed, audited and reported as a page
	@rm -rf $(PIPELINE) && mkdir -p $(PIPELINE); broken=0; \
	echo "1 of 3: a node under faults, its journal in $(PIPELINE)/data"; \
	$(BIN)/godwit verify --minutes 1 --subscribers 60 --exclude-fault clock --set node.data_directory=$(CURDIR)/$(PIPELINE)/data \
		--set journal.flush_interval_ms=1000 --set journal.statistics_interval_ms=1000 --html $(PIPELINE)/verify.html $(ARGS) || broken=1; \
	echo "2 of 3: the jobs, their tables in $(PIPELINE)/lake"; \
	$(SPARK)/godwit-pipelines run all --journal $(PIPELINE)/data --lake $(PIPELINE)/lake || broken=1; \
	echo "3 of 3: the report"; \
	$(SPARK)/godwit-pipelines report --lake $(PIPELINE)/lake --page $(PIPELINE)/report.html --open || broken=1; exit $$broken

picture: .make/engine .make/console .make/chromium ## the README's picture of the report, from the page of the last `make pipeline`
	cp $(PIPELINE)/report.html docs/reports/pipeline.html
	KEEP_SCREENSHOT=1 $(BIN)/pytest -q tests/console/test_report.py

bench: .make/engine ## measure this node against the baseline and the rivals found here, into benchmarks/results
	$(BIN)/python -m benchmarks.run $(ARGS)

mutants: .make/engine ## put broken servers under godwit verify; fails if one is not caught
	cargo build --quiet --locked --release -p godwit-mutants
	$(BIN)/python -m tests.mutants.table $(ARGS)

docs: .make/venv ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

generate: .make/venv ## write the code that is derived from protocol/
	$(BIN)/python protocol/generate.py

generate-tables: .make/pipelines ## write the reference pages of the pipelines' tables
	$(SPARK)/godwit-pipelines list --write docs/pipelines

ci: check test ## what .ci/run runs

clean: ## forget everything that was built
	rm -rf .make .venv .venv-pipelines target site dist console/node_modules console/vendor clients/javascript/node_modules clients/javascript/types clients/javascript/dist tests/browser/bundlers/node_modules server/godwit/_engine*.so

tools-run:
	@.ci/tools run >/dev/null

tools-check:
	@.ci/tools run check test >/dev/null

tools-test:
	@.ci/tools run test >/dev/null

tools-spark:
	@.ci/tools run spark >/dev/null

# Of the steps below those of one place (.venv, clients/javascript/node_modules, ...) run one after another, whoever calls them. A stamp is there
# only while what its step made is whole.
.make/venv: requirements.lock | tools-run
	@.ci/locked venv sh -ec 'rm -f $@; \
		test -x $(BIN)/python || { echo "making .venv"; "$$(.ci/tools run)" -m venv .venv; }; \
		test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); \
		echo "installing requirements.lock"; \
		$(UV) pip install --quiet --require-hashes -r requirements.lock; \
		touch $@'

.make/engine: .make/venv pyproject.toml $(RUST)
	@.ci/locked venv sh -ec 'rm -f $@; \
		echo "building the engine"; \
		VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --quiet --release --locked --uv; \
		touch $@'

.make/pipelines: pipelines/requirements.lock pipelines/pyproject.toml | .make/venv tools-spark
	@.ci/locked pipelines sh -ec 'rm -f $@; \
		test -x $(SPARK)/python || { echo "making .venv-pipelines"; "$$(.ci/tools run)" -m venv --without-pip .venv-pipelines; }; \
		echo "installing pipelines/requirements.lock (Spark)"; \
		$(BIN)/uv pip install --quiet --python $(SPARK)/python --require-hashes $(PACKED) -r pipelines/requirements.lock; \
		$(BIN)/uv pip install --quiet --python $(SPARK)/python --no-deps --no-build-isolation -e pipelines; \
		touch $@'

.make/node_modules: clients/javascript/package-lock.json clients/javascript/package.json
	@.ci/locked node sh -ec 'rm -f $@; \
		echo "installing clients/javascript/package-lock.json"; \
		cd clients/javascript; npm ci --silent; cd ../..; \
		touch $@'

.make/console: console/package-lock.json
	@.ci/locked console sh -ec 'rm -f $@; mkdir -p console/vendor; \
		echo "fetching the charts of the console"; \
		npm ci --prefix console --silent --no-progress; \
		cp console/node_modules/uplot/dist/uPlot.esm.js console/node_modules/uplot/dist/uPlot.min.css console/vendor/; \
		touch $@'

.make/promtool:
	@mkdir -p .make
	@.ci/promtool
	@touch $@

.make/delta: tests/pipelines/delta/spark/delta.xml .ci/delta-spark | .make/venv
	@.ci/delta-spark "$(CURDIR)/$(BIN)/uv" .make/delta-spark
	@test ! -d .make/delta-spark/jars || touch $@

.make/chromium:
	@mkdir -p .make
	@.ci/chromium
	@touch $@
