# Two commands matter: `make demo` shows the main job, `make test` runs everything that must hold.
# Both make their own environment in .venv from the hash-locked files under requirements/; the stamps make the second
# run start at once. PYTHON=... picks the interpreter, WORKERS=... the number of test processes (up to 4 by default).

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test fuzz lint types contract docs doctest lock dev clean
.DEFAULT_GOAL := demo

demo: $(RUN_STAMP)
	@$(BIN)/python examples/demo.py demo

test: $(DEV_STAMP)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4

# Twelve thousand inputs to the constructors, the model files and the program: about ten minutes.
fuzz: $(DEV_STAMP)
	@HYPOTHESIS_PROFILE=fuzz OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_fuzz.py

dev: $(DEV_STAMP)

lint: $(DEV_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV_STAMP)
	@$(BIN)/mypy

contract: $(DEV_STAMP)
	@$(BIN)/lint-imports --no-logo

doctest: $(DEV_STAMP)
	@$(BIN)/python -m pytest --doctest-modules src

docs: $(DEV_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The only way the lock files are made. The registry is whatever the machine is set up for; no host is written down.
lock:
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv; }
	@build/lock/bin/uv pip compile pyproject.toml --extra cli --group build -o requirements/run.txt $(LOCK_FLAGS)
	@build/lock/bin/uv pip compile pyproject.toml --all-extras --group dev -c requirements/run.txt \
		-o requirements/dev.txt $(LOCK_FLAGS)
LOCK_FLAGS := --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --quiet \
	--custom-compile-command "make lock"

clean:
	rm -rf $(VENV) build demo site

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "bagwise needs Python 3.11 or newer; none was found. Say where it is: make PYTHON=/path/to/python" >&2; exit 2; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# Packages first, then bagwise itself in place, built by the locked build tools: nothing unlocked is fetched.
$(RUN_STAMP): requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing requirements/run.txt (about half a minute, once)"
	@$(INSTALL) --no-compile --require-hashes -r requirements/run.txt
	@$(INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

$(DEV_STAMP): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "Installing requirements/dev.txt (a minute or two, once)"
	@$(INSTALL) --no-compile --require-hashes -r requirements/dev.txt
	@$(INSTALL) --no-build-isolation --no-deps -e .
	@touch $(RUN_STAMP) $@
