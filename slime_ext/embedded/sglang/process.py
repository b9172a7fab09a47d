"""Unmodified SGLang on CPU as a child process, with the builtin engine's interface.

One design choice: SGLang lives in `.venv-sglang`, made by `make sglang`, because its pins collide
with the embedded backend's; nothing of ours is imported there but placeholders for GPU libraries.
"""

from __future__ import annotations

import os
from pathlib import Path

from slime_ext.embedded.engine.cache import cache_bytes
from slime_ext.embedded.engine.process import EngineDownError, ServerProcess, lifeline_command
from slime_ext.weights.shape import read_shape

ENVIRONMENT_VARIABLE = "LONGRL_SGLANG_VENV"
"""Names the environment where it is not `.venv-sglang` in the working directory."""
_STUBS = Path(__file__).parent / "stubs"
_POOL_TOKENS = 65536
"""Tokens in SGLang's key/value pool, prompts and responses together, ..."""
_POOL_BYTES = 4 * 2**30
"""... and its bytes; the smaller of the two holds. SGLang allocates the pool at start."""
_FLAGS = (
    *("--device", "cpu", "--attention-backend", "torch_native"),
    # Left to "auto", a float32 checkpoint gets a float16 key/value cache.
    *("--dtype", "float32"),
    # Its kernels need a GPU, or AMX.
    *("--cuda-graph-backend-decode=disabled", "--cuda-graph-backend-prefill=disabled"),
    "--disable-overlap-schedule",
    "--skip-tokenizer-init",
    # Without it an idle scheduler spins on a core that the trainer needs.
    "--sleep-on-idle",
)


def sglang_venv() -> Path:
    """Where SGLang's environment is, or should be."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE, ".venv-sglang")).absolute()


def sglang_installed() -> bool:
    """Whether `make sglang` has run to its end."""
    return (sglang_venv() / "longrl-complete").is_file()


class SglangProcess(ServerProcess):
    """`python -m sglang.launch_server` for one dense model."""

    start_timeout_s = 600.0
    stop_grace_s = 10.0

    def start(self) -> str:
        """As `ServerProcess.start`; raises EngineDownError where SGLang is not installed."""
        if not sglang_installed():
            raise EngineDownError(
                f"no complete SGLang environment in {sglang_venv()}; run `make sglang`, or point "
                f"{ENVIRONMENT_VARIABLE} at one"
            )
        return super().start()

    def _command(self, folder: Path, version: str, port: int) -> list[str]:
        pool = min(_POOL_TOKENS, _POOL_BYTES // cache_bytes(read_shape(folder), 1))
        command = lifeline_command(sglang_venv() / "bin" / "python", "sglang.launch_server")
        command += ["--model-path", str(folder), "--weight-version", version]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        command += ["--max-running-requests", str(self._batch)]
        return [*command, "--max-total-tokens", str(pool), *_FLAGS]

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            # Packages of the trainer's environment must not leak in; without byte code, every start
            # would compile 200 MB of sources.
            if name not in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
        }
        return {
            **kept,
            "PYTHONPATH": str(_STUBS),
            "SGLANG_USE_CPU_ENGINE": "1",
            "HF_HUB_OFFLINE": "1",
            # Two threads (in float16) gave 173 tokens a second where one gives 6,197.
            "OMP_NUM_THREADS": "1",
        }
