# make run: the wallet and its page. make test: everything CI runs. PORT=8081 make run for another port.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PORT ?= 8080
DATA ?= data

.PHONY: setup run demo assets screenshots sdks test check soak chaos bench clean
setup: .venv/dev .venv/assets
run: .venv/run .venv/assets
	@$(BIN)/purse up --data $(DATA) --port $(PORT)
demo: .venv/run
	@$(BIN)/purse demo
assets: .venv/run
	@$(BIN)/python web/charts/fetch.py
screenshots: .venv/dev .venv/assets
	@$(BIN)/python tests/browser/screenshots.py
sdks: .venv/sdks/.done
test: .venv/dev .venv/assets .venv/sdks/.done
	$(BIN)/pytest -n auto --dist loadfile
check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/verify.py
	$(BIN)/lint-imports
soak: .venv/dev
	PURSE_SOAK=1 $(BIN)/pytest $(if $(SEED),,tests/property) tests/simulation --timeout 0
chaos: .venv/dev
	$(BIN)/python -m bench.chaos
	PURSE_SOAK=1 $(BIN)/pytest -s tests/integration/test_takeover.py tests/integration/test_cluster.py --timeout 0
bench: .venv/dev
	$(BIN)/python -m bench --install $(if $(RUNS),--runs $(RUNS))
clean:
	rm -rf .venv dist tests/sdk/node_modules tests/browser/node_modules web/charts/node_modules web/static/uplot.*

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Common Purse needs Python 3.11 or newer; found: $$(python3 --version 2>&1 || echo no python3). Or set PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "This Python cannot make a virtual environment (on Debian: apt install python3-venv)."; exit 1; }
.venv/run: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@
.venv/dev: .venv/run
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
.venv/assets: web/charts/package-lock.json | .venv/run
	@$(BIN)/python web/charts/fetch.py
	@touch $@
.venv/sdks/.done: $(wildcard tests/sdk/*.txt) tests/sdk/package-lock.json tests/browser/package-lock.json | .venv/dev
	@$(BIN)/python tests/sdk/fetch.py $(@D)
