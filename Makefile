PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# pip of the environment, or, where ensurepip is missing, the machine's own pip for it.
PIP = $(shell $(BIN)/python -m pip --version >/dev/null 2>&1 && echo "$(BIN)/python -m pip" || \
  echo "$(PYTHON) -m pip --python $(BIN)/python")
INSTALL = $(PIP) install --quiet --disable-pip-version-check -c constraints.txt

# Tests start many Pythons, which are slow where no compiled modules are kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test golden house test-all test-hard test-browser test-extras test-spark bench race race-full race-java docs figures \
  lock audit release clean

help:
	@echo "make demo      run the paper's experiment and name the files it wrote"
	@echo "make test      lint, types, import order, tests, doctests"
	@echo "make golden    which kinds of learners have other bits than tests/golden.json says"
	@echo "make house     what the package weighs: lines, long functions, abilities that are written again"
	@echo "make test-all  the same with the slow tests"
	@echo "make test-hard attacks: kills, fuzzed files and arrays, bounds checking; a quarter of an hour"
	@echo "make test-extras   River, PyTorch and Dask, which it installs; some gigabytes"
	@echo "make test-browser  reports in a real browser, chromium"
	@echo "make test-spark    Spark in local mode, in an environment of its own; needs Java 17, takes minutes"
	@echo "make bench     speed beside plain NumPy and bare compiled loops"
	@echo "make race      mistakes and speed beside other libraries; hours at first, then minutes"
	@echo "make race-full the same with ten seeds and nothing left out; takes days"
	@echo "make race-java the race with MOA in it; needs Java, takes hours"
	@echo "make docs      build the documentation"
	@echo "make figures   draw the figures of README and documentation anew"
	@echo "make lock      choose versions of all packages anew, with their digests"
	@echo "make audit     look up advisories for them, where a network allows it"
	@echo "make release   build wheel and sdist, and try the wheel in a clean environment"

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Driftline needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one, as in: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
	  { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV); }
	@echo "Installing into $(VENV) ..."
	@$(PIP) install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PIP) install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(BIN)/driftline reproduce

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2 --dist worksteal

golden: setup
	@$(BIN)/python tests/golden.py

house: setup
	@$(BIN)/python -m benchmarks.house

test-extras: setup
	@$(INSTALL) -e ".[river,torch,dask]"
	$(BIN)/pytest -q -m "slow or not slow" tests/test_river.py tests/test_torch.py \
	  tests/test_examples.py tests/test_sweep.py driftline/integrations

test-browser: setup
	@which chromium >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq chromium; }
	$(BIN)/pytest -q -m browser

# Half a gigabyte that no other test needs, in an environment of its own.
SPARK := .venv-spark
SPARK_PIP = $(shell $(SPARK)/bin/python -m pip --version >/dev/null 2>&1 && \
  echo "$(SPARK)/bin/python -m pip" || echo "$(PYTHON) -m pip --python $(SPARK)/bin/python")

test-spark:
	@command -v java >/dev/null 2>&1 || { apt-get update -qq && \
	  apt-get install -y -qq openjdk-17-jre-headless; }
	@test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK) >/dev/null 2>&1 || \
	  { rm -rf $(SPARK); $(PYTHON) -m venv --without-pip $(SPARK); }
	@echo "Installing into $(SPARK) ..."
	@$(SPARK_PIP) install --quiet --disable-pip-version-check -c constraints.txt \
	  -e ".[spark]" hypothesis pytest
	$(SPARK)/bin/python -m pytest -q -m "spark or not spark" tests/test_spark.py \
	  tests/test_key_events.py driftline/keyed driftline/integrations/spark

test-all: setup
	DRIFTLINE_PROFILE=all $(BIN)/pytest -q -n 2 --dist worksteal \
	  -m "not hard and not browser and not spark"

# Kernels once more with Numba's bounds checking, in an empty cache of their own: the cache does not
# know that flag. Passes over weights that are built from pointers (kernels/sweeps.py, gathers.py,
# ahead.py, together.py) are not seen by it: tests/test_safety.py and test_passes.py hold these.
BOUNDS := .bounds
KERNEL_TESTS := $(addprefix tests/test_,bounds.py losses.py decoders.py learner.py items.py \
  passes.py precision.py convolutional.py polytopes.py committee.py committee_fused.py \
  scaling.py restarts.py certificates.py hindsight.py pairwise.py safety.py features.py members.py \
  mixed_committees.py scaled_rounds.py hashing.py lags.py alarms.py \
  sample_weights.py late_labels.py bandit.py clicks.py compiled_structures.py \
  compiled_sequences.py sparse_sequences.py maps_of_sequences.py keyed.py sweep.py)

test-hard: setup
	$(BIN)/pytest -q -s -m hard
	rm -rf $(BOUNDS) && mkdir -m 700 $(BOUNDS)
	DRIFTLINE_PROFILE=hard NUMBA_BOUNDSCHECK=1 DRIFTLINE_CACHE=$(CURDIR)/$(BOUNDS) \
	  $(BIN)/pytest -q -n 2 \
	  -m "not slow and not browser" $(KERNEL_TESTS)
	rm -rf $(BOUNDS)

bench: setup
	@$(BIN)/python -m benchmarks

race: setup
	@$(INSTALL) -e ".[race]"
	@$(BIN)/python -m benchmarks.race

race-full: setup
	@$(INSTALL) -e ".[race]"
	@$(BIN)/python -m benchmarks.race --full

race-java: setup
	@command -v java >/dev/null 2>&1 || { echo "MOA needs Java, which is not here." >&2; exit 1; }
	@$(INSTALL) -e ".[race,race-java]"
	@$(BIN)/python -m benchmarks.race --java

docs: setup
	@$(INSTALL) -e ".[docs]"
	$(BIN)/sphinx-build -W -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

figures: demo
	cp results/reproduce/recommended.png docs/images/
	$(BIN)/driftline guarantees
	cp results/guarantees/constant.png docs/images/
	$(BIN)/python docs/draw.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/shots.py

# Versions and digests of all that tests are run with; constraints.txt says which versions.
lock: setup
	@$(INSTALL) uv
	@printf 'hatchling>=1.26\neditables>=0.5\n' > $(VENV)/build.in
	@$(BIN)/uv pip compile -q pyproject.toml $(VENV)/build.in --extra dev --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --universal --python-version 3.11 \
	  -c constraints.txt -o requirements.lock

audit: setup
	@$(INSTALL) pip-audit
	@$(BIN)/pip-audit --disable-pip --require-hashes -r requirements.lock || { \
	  echo "Advisories were found, or could not be looked up: see above." >&2; exit 1; }

# The wheel is built from the sdist, by the build tools of requirements.lock.
release: setup
	@$(INSTALL) build
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	.ci/try_wheel dist/driftline-*.whl "$$($(BIN)/python -m pip --version >/dev/null 2>&1 && \
	  echo $(BIN)/python || echo $(PYTHON))"
	@echo "Tried and good:" && ls -l dist

clean:
	rm -rf $(VENV) $(SPARK) $(BOUNDS) dist results docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
