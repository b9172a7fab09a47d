#!/usr/bin/env bash
# Makes an environment of its own for TRL, the peer that tests/bench/grpo_step.py compares with.
# Run by `make trl` from the project's root; about 2 minutes and 1.5 GB. A second run repairs.
# torch goes first: it is then installed already when TRL's dependencies ask for it, and the build
# without CUDA that was found for the pinned version stays.
set -euo pipefail

target="${1:-.venv-trl}"
python="${PYTHON:-python3}"

"$python" -m venv "$target"
"$target/bin/python" -m pip install --quiet torch==2.13.0
"$target/bin/python" -m pip install --quiet \
    trl==1.16.0 transformers==5.24.0 accelerate==1.15.0 datasets==5.2.0
"$target/bin/python" -c "import trl; print('TRL', trl.__version__, 'is ready')"
