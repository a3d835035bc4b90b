# Everything starts from here and needs nothing but Python 3.11 or later with pip, make, bash and git.
# Another interpreter: make PYTHON=python3.12 test
# More for pytest:     make test PYTEST_ARGS="-k catalog -x"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
PYTEST_ARGS ?=
ENV = $(PYTHON) tools/env.py
PY = .venv/bin/python

# Public bug reports as runnable cases; they lie beside the checkout, where there are any.
CASES_FOLDER = ../shared/cases
CASES = B00,B01,B02,B03,B040,B041,B042,B046,B048,B05,B06,B07,B08,B10,B11,B12,B14

.PHONY: help
help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

.PHONY: dev servers clients envs
dev: ## Make .venv, with loom installed editable
	@$(ENV) dev

servers: ## Make the environments of the real MCP servers
	@$(ENV) servers

clients: ## Make the environments of the real MCP clients
	@$(ENV) clients

envs: ## Make every environment
	@$(ENV) all

.PHONY: demo
demo: dev servers ## Show loom in front of real servers
	@$(PY) -m demo

.PHONY: test
test: dev servers ## Run the quick suite: all but what is marked acceptance
	@$(PY) -m pytest -m "not acceptance" $(PYTEST_ARGS)

.PHONY: lint
lint: dev ## Check form, style and types
	@$(ENV) tools
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(ENV) run pyright --project pyproject.toml --pythonpath $(PY)

.PHONY: cases
cases: dev ## Run the cases from public bug reports, where they are at hand
	@if [ ! -f $(CASES_FOLDER)/drive.py ]; then \
	  echo "cases: skipped, there is no $(CASES_FOLDER) beside this checkout"; exit 0; \
	fi; \
	work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	PATH="$$PWD/.venv/bin:$$PATH" BUGS_TMP="$$work/cases" PYTHONDONTWRITEBYTECODE=1 \
	  python $(CASES_FOLDER)/drive.py --peer $(CASES_FOLDER)/peers/loom.json --only $(CASES) | tee "$$work/log"; \
	awk '/^\{/ { next } $$1 == "PASS" { passed++; next } { failed++; print "cases: not passed: " $$2 } \
	  END { printf "cases: %d passed, %d not\n", passed, failed; exit failed || !passed }' "$$work/log"

.PHONY: acceptance
acceptance: lint test cases ## Run everything, the slow tests and the benchmarks too
	@$(ENV) all
	@$(PY) -m pytest -m acceptance $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory bench

.PHONY: bench
bench: dev ## Run the benchmarks
	@$(PY) -m benchmarks

.PHONY: lock
lock: ## Make the lock files anew; UPGRADE=1 takes newer versions
	@$(PYTHON) tools/lock.py $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## Remove the environments and everything else that was made
	@rm -rf .venv .envs dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
