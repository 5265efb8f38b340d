PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo demo-web test golden lint types layers unit properties live-test live-bench live-binaries web-test fuzz bench clean

demo: $(STAMP)
	$(BIN)/podium demo

demo-web: $(STAMP)
	$(BIN)/podium example fleet | $(BIN)/podium serve -f -

test: lint types layers unit

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check src tests bench examples scripts/podium-python
	$(BIN)/ruff format --check src tests bench examples scripts/podium-python

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n auto

golden: $(STAMP)
	$(BIN)/pytest -n auto -m golden

# Against a real API server, etcd and kube-scheduler, which take Go and some minutes to build the first time.
live-test: $(STAMP) live-binaries
	$(BIN)/pytest tests/live $(LIVE)

live-binaries:
	cd tests/live && mkdir -p .bin && go build -o .bin/ ./cmd/...

# Podium and kube-scheduler one after the other, on a quiet machine.
live-bench: $(STAMP) live-binaries
	cd tests && ../$(BIN)/python -m live.benchmark && ../$(BIN)/python -m live.benchmark large

web-test: $(STAMP)
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null || \
		{ echo "make web-test needs Debian's chromium, which cannot be installed here: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	$(BIN)/pytest -o addopts="-q --strict-markers" tests/browser $(WEB)

# The properties with ten times the examples, other ones each time; takes some minutes.
PROPERTIES := tests/cluster/test_incremental.py tests/engine/test_incremental.py tests/engine/test_agreement.py \
	tests/timeline/test_full_clusters.py tests/timeline/test_properties.py tests/oracles

# PROFILE=deep has the same examples each time, and fewer.
PROFILE ?= search

properties: $(STAMP)
	HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/pytest -n auto -x $(PROPERTIES)

# Damaged input for every command; other cases with another SEED.
SEED ?= 1
MINUTES ?= 3

fuzz: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --seed $(SEED) --minutes $(MINUTES) $(FUZZ)

bench: $(STAMP)
	$(BIN)/python -m bench.run $(BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
