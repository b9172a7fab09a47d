#!/usr/bin/env bash
# Makes an environment of its own in which slime's rollout half runs on CPU beside our hooks.
# Run by `make test-slime` from the project's root; about 2 minutes and 2 GB. A second run repairs.
# slime itself is not installed: SLIME_DIR names the checkout that is put on PYTHONPATH.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="${1:-.venv-slime}"
python="${PYTHON:-python3}"

"$python" -m venv "$target"
# torch goes first: the build without CUDA that was found for the pinned version stays.
"$target/bin/python" -m pip install --quiet -c constraints.txt torch
"$target/bin/python" -m pip install --quiet -c constraints.txt -e ".[embedded]"
"$target/bin/python" -m pip install --quiet -c constraints.txt -r "$here/requirements.txt"
