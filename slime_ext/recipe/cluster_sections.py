"""Sections of the slime backend: host, layout, engines, GPUs, plan, pass-through flags.

One design choice: they state what a person decides (GPUs, a layout, a context); flags, ports and
arithmetic are derived from them in one place, `launch/arguments.py`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from slime_ext.recipe.section import Section
from slime_ext.recipe.service_section import ServiceSection

HostVersion = Literal["v0.3.1", "v0.2.4"]


class SlimeSection(Section):
    """The host, as it lies on the nodes."""

    version: HostVersion = "v0.3.1"
    path: str = "/root/slime"
    """slime's checkout, where its train.py lies."""
    megatron_path: str = "/root/Megatron-LM"
    """Put on PYTHONPATH."""


class ParallelSection(Section):
    """How one copy of the model is cut, and how many copies there are."""

    tp: int = Field(default=1, gt=0)
    """Tensor parallel."""
    pp: int = Field(default=1, gt=0)
    """Pipeline stages."""
    cp: int = Field(default=1, gt=0)
    """Context parallel; each sequence is cut into 2 x cp pieces (zigzag)."""
    ep: int = Field(default=1, gt=0)
    """Expert parallel."""
    etp: int = Field(default=1, gt=0)
    """Tensor parallel inside an expert."""
    dp: int | None = Field(default=None, gt=0)
    """Data parallel; None takes what the GPUs leave (slime) or 1 (embedded)."""
    sequence_parallel: bool = True
    """Shards activations over the tensor parallel group; without effect at tp = 1."""


class PerformanceSection(Section):
    """What the trainer does about memory and speed."""

    max_tokens_per_gpu: int = Field(default=8192, gt=0)
    """Tokens of one micro-batch a GPU; soft: a longer sample is a micro-batch of its own."""
    recompute: Literal["full", "none"] = "full"
    """`full` keeps one input a layer and computes the rest again in the backward pass."""
    log_prob_chunk: int | None = Field(default=None, gt=0)
    """Rows of logits turned into log-probs at once. None leaves it off: slime's chunks save in the
    passes without gradients, and cost a second gradient of the logits in the training pass."""
    offload: bool = True
    """Move the trainer to host memory while responses are generated (shared GPUs)."""


class EngineSection(Section):
    """The SGLang engines."""

    gpus: int = Field(default=8, gt=0)
    """GPUs of one engine (its tensor parallel size)."""
    ep: int = Field(default=1, gt=0)
    """Expert parallel inside an engine."""
    dp_attention: int = Field(default=1, gt=0)
    """Data parallel groups for attention; above 1 key-value heads are copied less often."""
    memory_fraction: float = Field(default=0.7, gt=0, lt=1)
    """Share of GPU memory for weights and key-value cache."""
    context_tokens: int | None = Field(default=None, gt=0)
    """None takes rollout.context_tokens and a margin of 64 (an engine reads a few tokens less)."""
    concurrency: int = Field(default=128, gt=0)
    """Requests under way in one engine."""
    cuda_graph_max_batch: int | None = Field(default=None, gt=0)
    config_overrides: dict[str, Any] = Field(default_factory=dict)
    """Changes to config.json in the engine, e.g. { max_position_embeddings = 161000 }."""
    request_timeout_s: float = Field(default=14400.0, gt=0)
    """Of the router, for one request; a 32K-token response takes tens of minutes under load."""


class ClusterSection(Section):
    """The machines; a site writes it once, in the file that LONGRL_SITE names."""

    nodes: int = Field(default=1, gt=0)
    gpus_per_node: int = Field(default=8, gt=0)
    gpu_memory_gib: float = Field(default=79.6, gt=0)
    """What the driver shows for an 80 GB card."""
    host_memory_gib: float = Field(default=1800.0, gt=0)
    """Of one node."""
    colocate: bool = True
    """Training and rollout take turns on the same GPUs."""
    rollout_gpus: int | None = Field(default=None, gt=0)
    """GPUs of the engines where they are not shared; None takes all that training leaves."""
    partition: str | None = None
    account: str | None = None
    time: str | None = None
    """Limit of one job in SLURM's words, e.g. "24:00:00"; None takes the partition's."""
    exclusive: bool = True
    """Whole nodes with all their cores and memory (slime). Shared nodes need their cores and memory
    named in `sbatch`: SLURM gives one core a task otherwise."""
    sbatch: list[str] = Field(default_factory=list)
    """Further #SBATCH lines, e.g. ["--qos=high", "--exclude=node7"]."""
    requeue: bool = True
    """Queue the job again when it was preempted or reached its time limit."""
    signal_s: int = Field(default=600, gt=0)
    """Seconds before the time limit at which the job is told to save and stop."""
    container: Literal["none", "pyxis", "apptainer"] = "none"
    image: str | None = None
    """Container image: a registry address or a file."""
    mounts: list[str] = Field(default_factory=list)
    """Further folders the container sees, "HOST:INSIDE" or "PATH"; the run folder always is."""
    setup: list[str] = Field(default_factory=list)
    """Shell lines run first on every node, e.g. ["module load cuda"]."""
    python: str = "python3"
    interface: str | None = None
    """Network interface of NCCL, gloo and Ray, e.g. "bond0"; None takes the host name's."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the fabric, e.g. { NCCL_IB_TC = "160" }; never a key."""
    secrets: list[str] = Field(default_factory=list)
    """Names of further variables a run needs and nobody may see, beside those of W&B and the judge;
    values come from the environment of `longrl submit` or from `secrets_file`."""
    secrets_file: str | None = None
    """File of NAME=value lines, mode 600, read on the nodes."""
    ready_timeout_s: float = Field(default=600.0, gt=0)
    """How long all nodes may take to join Ray."""
    services: list[ServiceSection] = Field(default_factory=list)
    """Servers the job starts before the run, e.g. a judge; one that ends, ends the job."""

    @property
    def first_node_gpus(self) -> int:
        """GPUs of the first node that services leave to the run."""
        return self.gpus_per_node - sum(one.gpus for one in self.services)

    @property
    def gpus(self) -> int:
        """GPUs the run has for training and rollout."""
        return (self.nodes - 1) * self.gpus_per_node + self.first_node_gpus

    @model_validator(mode="after")
    def _container_has_an_image(self) -> ClusterSection:
        if self.container != "none" and not self.image:
            raise ValueError(
                f"container = {self.container!r} needs an image; write image = "
                '"docker://slimerl/slime:nightly-dev-20260804a" or the path of an image file'
            )
        return self

    @model_validator(mode="after")
    def _services_fit(self) -> ClusterSection:
        for key in ("name", "port"):
            values = [getattr(one, key) for one in self.services]
            twice = [value for value in values if values.count(value) > 1]
            if twice:
                raise ValueError(f"two services have {key} = {twice[0]!r}; give each its own")
        if self.first_node_gpus < 0:
            raise ValueError(
                f"the services take {self.gpus_per_node - self.first_node_gpus} GPUs of the first "
                f"node, which has {self.gpus_per_node}; give one own_node = true"
            )
        return self


class WatchdogSection(Section):
    """When a job that makes no progress is ended."""

    factor: float = Field(default=10.0, gt=1)
    """Times the median step."""
    minimum_s: float = Field(default=3600.0, gt=0)
    """Never sooner than this after the last sign of life; also the limit before the first step."""


class PlanSection(Section):
    """What `longrl plan` and `longrl check` may assume; none of it changes a run."""

    mean_prompt_tokens: int | None = Field(default=None, gt=0)
    """None takes data.max_prompt_tokens."""
    mean_response_tokens: int | None = Field(default=None, gt=0)
    """None takes half of rollout.max_response_tokens."""
    train_tokens_per_gpu_s: float = Field(default=1500.0, gt=0)
    """Forward, backward and recomputation of one token, on one GPU."""
    prefill_tokens_per_gpu_s: float = Field(default=3000.0, gt=0)
    decode_tokens_per_gpu_s: float = Field(default=250.0, gt=0)
    """Over all requests of an engine, divided by its GPUs."""
    reserve_gib: float = Field(default=6.0, ge=0)
    """CUDA context, NCCL buffers and fragmentation of one GPU."""
    judge_gpus: int = Field(default=0, ge=0)
    """GPUs of a judge that the run serves itself."""
    reward_model_gpus: int = Field(default=0, ge=0)
    last_accuracy: float | None = Field(default=None, ge=0, le=1)
    """Accuracy of the starting model; tells how many groups carry a signal."""


class ExtraSection(Section):
    """Flags of the host that no section names, without the leading dashes; checked all the same."""

    slime: dict[str, Any] = Field(default_factory=dict)
    megatron: dict[str, Any] = Field(default_factory=dict)
    sglang: dict[str, Any] = Field(default_factory=dict)
    """Without the prefix `sglang-`."""
