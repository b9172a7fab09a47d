"""Peak memory and time of log-probabilities with gradients: head inside the chunk, and unchunked.

Each side runs in a process of its own; the peak is VmHWM above the resident size before. 4,096
tokens, vocabulary 151,936, chunk 256, one thread. The hidden state is 64 wide: its width adds only
the head's gradient, which is the same on both sides.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from slime_ext.embedded.log_probs import chunked_log_probs

TOKENS, VOCAB, HIDDEN, CHUNK = 4096, 151_936, 64, 256


def unchunked(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return (hidden @ weight.t()).log_softmax(-1).gather(-1, targets.unsqueeze(-1))


@torch.no_grad()
def unchunked_no_grad(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return unchunked(hidden, weight, targets)


def chunked(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return chunked_log_probs(hidden, weight, targets, 1.0, CHUNK)[0]


SIDES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "chunked": chunked,
    "unchunked": unchunked,
    "unchunked_no_grad": unchunked_no_grad,
}


def status_mib(key: str) -> float:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def run(side: str, hidden: Tensor, weight: Tensor, targets: Tensor) -> None:
    total = SIDES[side](hidden, weight, targets).sum()
    if total.requires_grad:
        total.backward()


def measure(side: str) -> None:
    """Print peak (MiB above base) and seconds of one forward and backward pass."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    weight = torch.randn(VOCAB, HIDDEN, requires_grad=True)
    hidden = torch.randn(TOKENS, HIDDEN, requires_grad=True)
    targets = torch.randint(VOCAB, (TOKENS,))
    run(side, hidden[:8], weight, targets[:8])
    weight.grad = hidden.grad = None
    base, start = status_mib("VmRSS"), time.perf_counter()
    run(side, hidden, weight, targets)
    print(status_mib("VmHWM") - base, time.perf_counter() - start)


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    results = {}
    for side in SIDES:
        command = [sys.executable, __file__, side]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results[side] = [float(value) for value in out.split()[-2:]]
    print(f"figure log_prob_peak_mib {results['chunked'][0]:.0f}")
    print(f"figure log_prob_peak_unchunked_mib {results['unchunked'][0]:.0f}")
    print(f"figure log_prob_peak_unchunked_no_grad_mib {results['unchunked_no_grad'][0]:.0f}")
    print(f"figure log_prob_time_ratio {results['chunked'][1] / results['unchunked'][1]:.2f}")
    print(f"figure log_prob_tokens {TOKENS}")
    print(f"figure log_prob_hidden {HIDDEN}")


if __name__ == "__main__":
    main()
