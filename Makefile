# Needs make and Python 3.11 or newer; everything else is installed into .venv.
# PYTHON=... chooses the Python to build .venv with, FLEXGROUP_PURE=1 the pure-Python form.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& command -v "$$p" && break; done)

SOURCES := $(shell find src -name '*.py')
CHECKED := src tests $(sort $(patsubst %/,%,$(dir $(wildcard benchmarks/*.py examples/*.py))))

# `make pure` lasts until `make compiled`.
ifneq ($(wildcard $(VENV)/.pure),)
export FLEXGROUP_PURE := 1
endif

INSTALLED := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
READY := $(if $(filter 1,$(FLEXGROUP_PURE)),$(INSTALLED),$(COMPILED))

# Tests start processes by the hundred: each would compile anew what it imports.
unexport PYTHONDONTWRITEBYTECODE

# A stamp is as old as the beginning of its step: what is edited meanwhile is newer.
BEGIN = touch $@.begun
END = mv $@.begun $@

.PHONY: help install run test check bench pure compiled clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(READY) ## create .venv with everything in it; .venv/bin/flexgroup is the command
	@echo "Installed: $(BIN)/flexgroup, $$($(BIN)/python -c 'from flexgroup._pure import compiled; print("compiled" if compiled() else "pure Python")')"

run: $(READY) ## a demonstration: simulate, verify, measure, report; anew each time, in runs/demo
	@echo "Running the demonstration, usually half a minute"
	$(BIN)/flexgroup experiment demo --scale small --out runs/demo --force

test: check ## check, then the whole test suite
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadgroup

check: $(READY) ## lint, formatting, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/python -m pytest -q tests/project/test_imports.py

bench: $(READY) ## run every benchmark in turn
	@set -e; for file in $(sort $(wildcard benchmarks/*.py)); do \
		echo "== $$file"; PYTHONPATH=. $(BIN)/python "$$file"; done

pure: $(INSTALLED) ## remove the compiled modules and stay in pure Python
	@find src \( -name '*.so' -o -name '*.pyd' \) -exec rm -f {} +
	@rm -f build/compiled-from $(COMPILED)
	@touch $(VENV)/.pure
	@echo "Pure Python, until \`make compiled\`."

compiled: $(INSTALLED) ## compile the hot modules with mypyc, or say why that fails
	@rm -f $(VENV)/.pure
	@touch $(COMPILED).begun
	@FLEXGROUP_PURE=0 $(BIN)/python setup.py -q build_ext --inplace
	@mv $(COMPILED).begun $(COMPILED)

clean: ## remove everything that was made here, except runs/
	@find src \( -name '*.so' -o -name '*.pyd' \) -exec rm -f {} +
	@find $(wildcard src tests benchmarks examples) -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(if $(PYTHON),,$(error No Python 3.11 or newer was found; install one, or name it: make PYTHON=/path/to/python3))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "FlexGroup needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0])'
	@echo "The first time takes three to five minutes: installing, and compiling if there is a C compiler"
	@echo "Creating $(VENV) with $(PYTHON), usually a few seconds"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Compiling is a step of its own, done with the mypy of the environment.
# The first time, pip tells what it fetches; later, there is little to tell.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@$(BEGIN)
	@echo "Installing into $(VENV), usually one to two minutes"
	@FLEXGROUP_PURE=1 $(BIN)/python -m pip install $(if $(wildcard $(INSTALLED)),-q) \
		--disable-pip-version-check -e '.[spark,dev]'
	@$(END)

$(COMPILED): $(INSTALLED) setup.py $(SOURCES)
	@$(BEGIN)
	@echo "Bringing the compiled modules up to date"
	@$(BIN)/python setup.py -q build_ext --inplace
	@$(END)
