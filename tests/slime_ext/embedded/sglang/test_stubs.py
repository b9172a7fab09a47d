"""The placeholders that stand for GPU libraries in SGLang's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slime_ext.embedded.sglang import process

STUBS = Path(process.__file__).parent / "stubs"


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that sees the placeholders; they must not reach this process's torch."""
    environment = {**os.environ, "PYTHONPATH": str(STUBS)}
    command = [sys.executable, "-P", "-S", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_whatever_sglang_names_at_import_exists():
    done = run(
        "import triton, triton.language as tl, torchvision\n"
        "from typing import Optional\n"
        "from triton.runtime.jit import KernelInterface\n"
        "from torchvision.transforms import v2\n"
        "from torchvision.transforms.functional import InterpolationMode\n"
        "from sgl_kernel import anything_cpu\n"
        "class Mine(KernelInterface): pass\n"
        "@triton.autotune(configs=[triton.Config({'B': 1})], key=['n'])\n"
        "@triton.jit\n"
        "def kernel(n, B: tl.constexpr, t: Optional[tl.dtype] = None): pass\n"
        "assert v2.Compose([v2.ToTensor()]) is not None\n"
        "assert InterpolationMode.BICUBIC.value == 'bicubic'\n"
        "assert torchvision.transforms.InterpolationMode is InterpolationMode\n"
        "assert triton.cdiv(7, 2) == 4 and triton.next_power_of_2(5) == 8\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("import triton\n@triton.jit\ndef add(): pass\nadd[(1,)]()", "add"),
        ("import triton\n@triton.jit\ndef add(): pass\nadd()", "add"),
        ("import triton; triton.runtime.driver.active", "active drivers"),
        ("import torchvision.transforms as t; t.Resize(3)(None)", "torchvision.transforms.Resize"),
        ("import sgl_kernel; sgl_kernel.shm_allreduce_cpu()", "sgl_kernel"),
    ],
)
def test_putting_a_placeholder_to_work_names_it(program, name):
    done = run(program)
    assert done.returncode != 0
    assert "AbsentError" in done.stderr
    assert name in done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "import sgl_kernel; sgl_kernel.rmsnorm",
        "import triton; triton.__wrapped__",
        "import triton.language; triton.language.__file__",
    ],
)
def test_names_that_code_probes_for_are_absent(program):
    assert "AttributeError" in run(program).stderr
