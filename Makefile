# One way in: `make help`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test java broker-assignor follow wheel sdist docs check check-operate check-release shape fault bench soak clean check-deploy

help: ## show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="--seconds 60 --json out.json" is passed on by `make run`'

setup: $(STAMP) ## make .venv with the pinned dependencies, fetch the Kafka and Spark jars, rehearse a start

$(STAMP): pyproject.toml deploy/constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 10) and f"lagwise needs Python 3.10 or newer, this is {v[0]}.{v[1]}: make PYTHON=python3.11 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned dependencies into $(VENV): 1.1 GB, one to five minutes the first time, without output"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" -c deploy/constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c deploy/constraints.txt --group dev -e ".[stream,demo,serve]"
	@$(BIN)/python -m pipeline.operate.fetch
	@touch $@

run: setup ## run the job on an embedded broker with live, uneven traffic (Ctrl-C ends it)
	@$(BIN)/lagwise demo $(ARGS)

test: setup ## unit, property, oracle (Kafka's own code, all assignments tried), Spark and broker tests (about 35 minutes on 2 cores)
	@$(BIN)/python -m pytest tests/unit tests/property -q -n 2 --dist worksteal
	@# Tests of one file share a job or a broker and tell its story in order.
	@# What fails beside others and passes alone is printed, and does not end the run (tests/again.py).
	@$(BIN)/python -m pytest tests/oracle tests/spark tests/integration -q -n 3 --dist loadfile --no-loadscope-reorder \
	  -p no:randomly --durations=10 \
	  || { status=$$?; [ $$status = 1 ] && $(BIN)/python -m tests.again tests/oracle tests/spark tests/integration; }

java: ## build/lagwise-follow-<version>.jar and its pom for consumers in Java, with javac (takes a JDK 17; KAFKA_CLIENTS=<class path>, Maven or `make setup`)
	@KAFKA_CLIENTS='$(KAFKA_CLIENTS)' PYTHONPATH=. $(or $(wildcard $(BIN)/python),$(PYTHON)) deploy/java/build.py

broker-assignor: ## build/lagwise-broker-assignor-<version>.jar and its pom for Kafka brokers, with javac (takes a JDK 17; KAFKA_BROKER=<class path>, Maven or `make setup`)
	@KAFKA_BROKER='$(KAFKA_BROKER)' PYTHONPATH=. $(or $(wildcard $(BIN)/python),$(PYTHON)) deploy/java/build.py --broker-assignor

follow: setup ## build/dist/lagwise_follow-<version>-py3-none-any.whl for consumers in Python
	@PYTHONPATH=. $(BIN)/python deploy/follow/build.py

wheel: setup ## build/dist: the wheel of this version
	@rm -f build/dist/*.whl
	@$(BIN)/python -m hatchling build --directory build/dist --target wheel

sdist: setup ## build/dist: the source archive of this version
	@rm -f build/dist/*.tar.gz
	@$(BIN)/python -m hatchling build --directory build/dist --target sdist

docs: setup ## build/site: the docs as a site, strictly: each link leads somewhere
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c deploy/constraints.txt --group docs
	@PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f deploy/site/mkdocs.yml
	@echo 'build/site/index.html'

check: setup ## formatting, lint, types, import contracts
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check .; exit 1; }
	@# Without the cache: whether a module exists is no part of its key.
	@$(BIN)/ruff check --quiet --no-cache .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check-operate: setup ## a real Prometheus scrapes the demo, a real Chromium looks at its page (fetches Debian's packages; about three minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c deploy/constraints.txt --group browser
	@$(BIN)/python -m pytest tests/operate -q -p no:randomly

check-release: setup ## the wheel in empty environments: the demo, serve, consumers; its dependencies for Python 3.10 to 3.13; the job on Spark 4.0 and 4.1 (about seven minutes)
	@$(BIN)/python -m pytest tests/release -q -n 2 --dist loadfile -p no:randomly --durations=5

check-deploy: setup docs ## image, chart, units and their configurations by helm, promtool, hadolint, systemd and others (fetches and builds them into .venv; takes Go)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c deploy/constraints.txt --group deploy
	@$(BIN)/python -m pytest tests/deploy -q -n 2 --dist loadfile -p no:randomly --durations=5

shape: setup ## modules per package, arrows, lines, complexity, comments, unused code
	@$(BIN)/python -m tests.shape

fault: setup ## kill the driver between every two steps, followers at every state of a hand-over, brokers that assign; the oracle tests with ten times as many groups (takes a JDK 17 and Go 1.26)
	@$(BIN)/python -m pytest tests/fault -q -p no:randomly
	@LAGWISE_ORACLE_EXAMPLES=3000 $(BIN)/python -m pytest tests/oracle -q -n 2 --dist loadfile --no-loadscope-reorder -p no:randomly

bench: setup ## measure; figures go to tests/benchmarks/results
	@$(BIN)/python -m tests.benchmarks

soak: setup ## one hour of traffic; file counts, disk, log size, memory (ARGS="--seconds 3600")
	@$(BIN)/python -m tests.benchmarks.soak $(ARGS)

clean: ## remove the virtual environment and what runs leave behind
	@rm -rf $(VENV) .lagwise .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info \
	  spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -prune -exec rm -rf {} +
