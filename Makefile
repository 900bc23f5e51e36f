PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test test-all bench docs clean

help:
	@echo "make demo      run the paper's experiment and name the files it wrote"
	@echo "make test      lint, types, import order, tests, doctests"
	@echo "make test-all  the same with the slow tests"
	@echo "make bench     speed beside plain NumPy and a bare compiled loop"
	@echo "make docs      build the documentation"

setup: $(VENV)/.installed

# A virtual environment with or without ensurepip; installed anew when its inputs change.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Driftline needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one, as in: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
	  { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV); }
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	  else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; \
	  echo "Installing into $(VENV) ..."; \
	  $$pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/driftline reproduce

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2

test-all: setup
	$(BIN)/pytest -q -n 2 -m "slow or not slow"

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	  else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; \
	  $$pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/sphinx-build -W -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:
	rm -rf $(VENV) results docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
