"""Adaptations of megatron-core: applied once, harmless twice."""

from __future__ import annotations

import torch
import torch.distributed as dist

from slime_ext.embedded import megatron_cpu


def test_adapting_and_starting_twice_changes_nothing() -> None:
    megatron_cpu.init_single_process()
    device, cuda = torch.cuda.current_device, torch.Tensor.cuda
    megatron_cpu.adapt()
    megatron_cpu.init_single_process()
    assert (torch.cuda.current_device, torch.Tensor.cuda) == (device, cuda)
    assert dist.get_world_size() == 1
    assert dist.get_backend() == "gloo"


def test_tensors_stay_where_they_are() -> None:
    megatron_cpu.adapt()
    tensor = torch.ones(2)
    assert tensor.cuda() is tensor
    assert torch.zeros(1, device=torch.cuda.current_device()).device.type == "cpu"
