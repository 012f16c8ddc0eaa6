# A bare machine needs Python 3.11 or newer, a shell and make; everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.tocsin-installed
UV := uv==0.13.9

.PHONY: help venv demo test lint bench soak lock clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo   start a real broker and watch reminders fire'
	@echo 'make test   everything: style, layers, types, tests, the built wheel'
	@echo 'make lint   style, layers and types only'
	@echo 'make bench  measure lateness and throughput on this machine'
	@echo 'make soak   the long tests'
	@echo 'make lock   choose and record the versions of all dependencies again'
	@echo 'make clean  remove what the tools left behind (rm -rf .venv for the environment)'

venv: $(STAMP)

# Done again only when the lock or the project file changed. An environment that already exists is
# used as it is: pip brings it to the locked versions.
$(STAMP): requirements.lock pyproject.toml
	@set -eu; \
	works='import sys, pip; sys.exit(sys.version_info < (3, 11))'; \
	suits='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	if ! $(BIN)/python -c "$$works" 2>/dev/null; then \
	  found=''; \
	  for candidate in $${PYTHON:-} python3.13 python3.12 python3.11 python3.14 python3 python; do \
	    if "$$candidate" -c "$$suits" >/dev/null 2>&1; then found=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo 'Tocsin needs Python 3.11 or newer with the venv module, and none was found.' >&2; \
	    echo 'Install one (Debian and Ubuntu: also python3-venv), or name it: make PYTHON=/path/to/python3' >&2; \
	    exit 1; \
	  fi; \
	  echo "Creating $(VENV) with $$found"; \
	  "$$found" -m venv --clear $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tocsin demo

# The loop's tests run workers as threads of the test process, so they have one of their own.
test: lint
	$(BIN)/pytest --ignore=tests/integration/loop
	$(BIN)/pytest tests/integration/loop

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/tocsin bench

soak: $(STAMP)
	$(BIN)/pytest -m soak

# Hashes for every platform and every Python from 3.11 on; no address and no path of the machine
# that made it. The old lock is read too, so only what must change changes; `make lock UPGRADE=--upgrade`
# takes the newest of everything.
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	env -u UV_FIND_LINKS $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
	  --custom-compile-command 'make lock' $(UPGRADE) \
	  --group dev --output-file requirements.lock pyproject.toml

clean:
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
