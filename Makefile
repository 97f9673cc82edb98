# Two commands matter: `make demo` and `make test`. Both set up all that they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CORE := .venv-numpy2
MINDFORMERS := .venv-mindformers
BIN := $(VENV)/bin
# Of the 10,000 modules of an environment few are ever imported, and those are compiled then.
PIP := -q --disable-pip-version-check --no-compile
# Unlike -c, these reach the isolated build of the package as well (from pip 25.3 on the second alone is meant to).
PINNED = PIP_CONSTRAINT=$(1) PIP_BUILD_CONSTRAINT=$(1)
PYTEST ?=
LANGUAGE_SERVER := .tools/language-server/2.0.0
PROMETHEUS := .tools/prometheus-alertmanager

.PHONY: demo test lint types layers unit mindspore demo-tests core mindformers bench tools available clean

demo: $(VENV)/.demo
	$(BIN)/python -m examples.moe_pretrain.run

# Two at a time, in this order: environments are installed side by side, and the longest parts begin first.
test:
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line \
		lint types layers $(CORE)/.core $(TRAINER) unit mindspore demo-tests core mindformers

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# All but what runs MindSpore for long: the modules that cannot be imported without it, and the demo.
MINDSPORE_MODULES = $(shell grep -rl '^\([a-z]* = \)\?pytest.importorskip."mindspore"' tests)
unit: $(VENV)/.dev available
	$(BIN)/python -m pytest $(MINDSPORE_MODULES:%=--ignore=%) --ignore=tests/demo $(PYTEST)

# The rest waits for the tools as `unit` does, or it would take the places of the longest part.
mindspore: $(VENV)/.dev | available
	$(BIN)/python -m pytest $(MINDSPORE_MODULES) -p no:cacheprovider $(PYTEST)

demo-tests: $(VENV)/.dev | available
	$(BIN)/python -m pytest tests/demo -p no:cacheprovider

# The core once more without MindSpore and extras, on numpy 2: what a side-car on a log installs. All of what it leaves out stands
# in this command, and ran above: the modules that cannot be imported without MindSpore, and the marked tests.
core: $(CORE)/.core available
	$(CORE)/bin/python -m pytest $(MINDSPORE_MODULES:%=--ignore=%) -m "not mindspore and not extras and not long" \
		-p no:cacheprovider $(PYTEST)

# The real trainer of MindSpore Transformers on a CPU; the shims that let it run there lie in ../shared.
ifneq ($(wildcard ../shared/mindformers-cpu),)
TRAINER := $(MINDFORMERS)/.ready
mindformers: $(TRAINER) | available
	$(MINDFORMERS)/bin/python -m pytest tests/mindformers -p no:cacheprovider
else
mindformers:
	@echo "tests/mindformers: skipped, needs ../shared, which is not here"
endif

bench: $(VENV)/.bench
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# What tests ask that is no Python package: the YAML language server, promtool, Alertmanager.
tools: $(LANGUAGE_SERVER) $(PROMETHEUS)

# What cannot be brought stops nothing: its tests skip and say so.
available: $(VENV)/.dev
	-@$(MAKE) --no-print-directory --keep-going tools

$(PROMETHEUS): tools.sh
	sh tools.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call PINNED,constraints.txt) $(BIN)/python -m pip install $(PIP) -e '.[mindspore,demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(call PINNED,constraints.txt) $(BIN)/python -m pip install $(PIP) -e '.[mindspore,demo,fast,plots,dev]'
	touch $@

# The server that editors ask about YAML, for the test that asks it; its node comes with the dev extra.
$(LANGUAGE_SERVER): | $(VENV)/.dev
	mkdir -p $(@D)
	PATH="$(CURDIR)/$(BIN):$$PATH" npm install --silent --no-audit --no-fund --no-save --prefix $(@D) yaml-language-server@$(@F)
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(call PINNED,constraints.txt) $(BIN)/python -m pip install $(PIP) -e '.[bench]'
	touch $@

$(MINDFORMERS)/.ready: pyproject.toml constraints-mindformers.txt
	$(PYTHON) -m venv $(MINDFORMERS)
	$(MINDFORMERS)/bin/python -m pip install $(PIP) --no-deps -r constraints-mindformers.txt
	$(call PINNED,constraints.txt) $(MINDFORMERS)/bin/python -m pip install $(PIP) --no-deps -e .
	touch $@

$(CORE)/.core: pyproject.toml constraints-numpy2.txt
	$(PYTHON) -m venv $(CORE)
	$(call PINNED,constraints-numpy2.txt) $(CORE)/bin/python -m pip install $(PIP) -e '.[demo,test]'
	touch $@

clean:
	rm -rf $(VENV) $(CORE) $(MINDFORMERS) .tools output
