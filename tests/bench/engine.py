"""Cost of rollouts with the builtin engine at the lab model's shape (12 prompts x 8 samples x 40).

One design choice: stop tokens are off, so that every run computes the same number of tokens and the
figure does not depend on how well a checkpoint has learned to stop.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import torch
from safetensors.torch import save_file

from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.process import EngineProcess
from slime_ext.embedded.engine.request import Request, SamplingParams
from slime_ext.embedded.engine.sampler import Wave

PROMPTS, SAMPLES, NEW_TOKENS, REPEATS = 12, 8, 40, 15
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "vocab_size": 151,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
}


def write_model(folder: Path) -> Path:
    """A random model of the lab's shape as a Hugging Face folder."""
    torch.manual_seed(0)
    tensors = {
        "model.embed_tokens.weight": 0.3 * torch.randn(151, 64),
        "model.norm.weight": torch.ones(64),
    }
    sizes = {
        "self_attn.q_proj": (128, 64),
        "self_attn.k_proj": (64, 64),
        "self_attn.v_proj": (64, 64),
        "self_attn.o_proj": (64, 128),
        "mlp.gate_proj": (128, 64),
        "mlp.up_proj": (128, 64),
        "mlp.down_proj": (64, 128),
    }
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        for name, size in sizes.items():
            tensors[f"{prefix}{name}.weight"] = 0.1 * torch.randn(*size)
        for name, width in (
            ("input_layernorm", 64),
            ("post_attention_layernorm", 64),
            ("self_attn.q_norm", 32),
            ("self_attn.k_norm", 32),
        ):
            tensors[f"{prefix}{name}.weight"] = torch.ones(width)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def requests(length: int) -> list[Request]:
    """One step's requests: every prompt SAMPLES times."""
    torch.manual_seed(1)
    prompts = [torch.randint(0, 151, (length,)) for _ in range(PROMPTS)]
    return [
        Request(f"{i}-{j}", prompt, SamplingParams(max_new_tokens=NEW_TOKENS, seed=i * SAMPLES + j))
        for i, prompt in enumerate(prompts)
        for j in range(SAMPLES)
    ]


def tokens_per_cpu_second(model: Decoder, length: int) -> float:
    """Median over REPEATS waves, after two to warm up."""
    rates = []
    for repeat in range(REPEATS + 2):
        batch = requests(length)
        start = time.process_time()
        Wave(model, batch).run()
        spent = time.process_time() - start
        if repeat >= 2:
            rates.append(sum(len(r.answer.result().output_ids) for r in batch) / spent)
    return statistics.median(rates)


def server_cpu_seconds(folder: Path) -> tuple[float, float]:
    """The server's CPU time for a step's 96 requests: sent singly and answered without sampling
    (what HTTP costs), and sent as one call with everything sampled.

    Means over REPEATS steps, as the kernel counts in units of 10 ms.
    """
    batch = requests(150)
    prompts = [request.prompt.tolist() for request in batch]
    params = [{"max_new_tokens": NEW_TOKENS, "sampling_seed": r.params.seed} for r in batch]
    whole = {"input_ids": prompts, "sampling_params": params, "return_logprob": True}
    with (
        EngineProcess(folder, 128, folder / "engine.log") as engine,
        httpx.Client(base_url=engine.url, timeout=60) as client,
    ):

        def mean_cost(send: Callable[[], None]) -> float:
            send()
            start = engine.cpu_seconds()
            for _ in range(REPEATS):
                send()
            return (engine.cpu_seconds() - start) / REPEATS

        def singly() -> None:
            for prompt in prompts:
                body = {"input_ids": prompt, "sampling_params": {"max_new_tokens": 0}}
                client.post("/generate", json=body).raise_for_status()

        def together() -> None:
            client.post("/generate", json=whole).raise_for_status()

        return mean_cost(singly), mean_cost(together)


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = write_model(Path(name))
        model = Decoder(folder)
        for length in (150, 600):
            rate = tokens_per_cpu_second(model, length)
            print(f"figure engine_sampler_tokens_per_cpu_second_{length} {rate:.0f}")
        http, step = server_cpu_seconds(folder)
        print(f"figure engine_http_cpu_seconds_96_requests {http:.3f}")
        print(f"figure engine_server_cpu_seconds_step_150 {step:.3f}")


if __name__ == "__main__":
    main()
