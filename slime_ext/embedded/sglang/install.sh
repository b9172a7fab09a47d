#!/usr/bin/env bash
# Makes .venv-sglang: an environment of its own in which unmodified SGLang serves on CPU.
# Run by `make sglang` from the project's root; about 2 minutes and 1.7 GB. A second run repairs.
# SGLang stays apart because its pins (transformers, openai) collide with the embedded backend's.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="${1:-.venv-sglang}"
python="${PYTHON:-python3}"

"$python" -m venv "$target"
"$target/bin/python" -m pip install --quiet -r "$here/requirements.txt"
"$target/bin/python" -m pip install --quiet --no-deps \
    xgrammar==0.2.7 compressed-tensors==0.18.0 sglang==0.5.23

# The marker is written last: SglangProcess takes an interrupted installation for a missing one.
touch "$target/longrl-complete"
echo "SGLang 0.5.23 for CPU is ready in $target"
