"""Checkpoints and references that cannot be exported are refused, by name, before anything else."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from slime_ext.weights.export.plan import (
    ExtraTensorsError,
    PlanError,
    plan_export,
    refuse_extra,
)
from slime_ext.weights.export.write import export_weights
from slime_ext.weights.hf_folder import read_hf
from slime_ext.weights.names import hf_to_megatron
from slime_ext.weights.shape import shape_from_config
from slime_ext.weights.stored import StoredError
from tests.fakes.megatron_checkpoints import megatron_args, random_weights
from tests.fakes.plain_checkpoints import write_plain
from tests.fakes.tiny_configs import tiny_config

Case = Callable[[str, bool, str], tuple[Path, dict[str, Any]]]
Copied = Callable[[str], tuple[Path, dict[str, Any]]]


@pytest.fixture
def copied(case: Case, tmp_path: Path) -> Copied:
    """A copy of the untied Qwen3 checkpoint in a layout, to be damaged."""

    def copy(layout: str) -> tuple[Path, dict[str, Any]]:
        checkpoint, config = case("qwen3", False, layout)
        return shutil.copytree(checkpoint, tmp_path / layout / checkpoint.name), config

    return copy


def test_a_missing_file_is_named(copied: Copied) -> None:
    checkpoint, config = copied("tp2")
    (checkpoint / "__1_0.distcp").unlink()
    with pytest.raises(StoredError, match=r"1 of 2 files missing or cut off, .*__1_0\.distcp"):
        plan_export(checkpoint, config)


def test_a_truncated_file_is_named(copied: Copied) -> None:
    checkpoint, config = copied("tp2")
    with (checkpoint / "__0_0.distcp").open("rb+") as file:
        file.truncate(os.fstat(file.fileno()).st_size - 1)
    with pytest.raises(StoredError, match=r"cut off.*__0_0\.distcp.*copy it again"):
        plan_export(checkpoint, config)


def test_a_file_that_shrinks_while_it_is_read_is_named(copied: Copied, tmp_path: Path) -> None:
    checkpoint, config = copied("tp1")
    plan = plan_export(checkpoint, config)
    os.truncate(checkpoint / "__0_0.distcp", 100_000)
    with pytest.raises(StoredError, match=r"__0_0\.distcp"):
        export_weights(plan, tmp_path / "out", lambda folder: None)
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.glob("out.partial/*.safetensors*")) == []


@pytest.mark.parametrize("missing", [".metadata", "common.pt", "metadata.json"])
def test_a_checkpoint_still_being_written_is_refused(copied: Copied, missing: str) -> None:
    checkpoint, config = copied("tp1")
    (checkpoint / missing).unlink()
    with pytest.raises(StoredError, match=f"{missing} is missing.*still being written"):
        plan_export(checkpoint, config)


def test_an_index_of_more_processes_is_refused(copied: Copied) -> None:
    checkpoint, config = copied("tp1")
    shutil.copy(copied("tp2")[0] / ".metadata", checkpoint)
    with pytest.raises(StoredError, match=r"__1_0\.distcp"):
        plan_export(checkpoint, config)


def test_files_of_more_processes_than_the_index_knows_are_refused(copied: Copied) -> None:
    checkpoint, config = copied("tp1")
    shutil.copy(copied("tp2")[0] / "__1_0.distcp", checkpoint)
    with pytest.raises(StoredError, match=r"different numbers of processes.*__1_0\.distcp"):
        plan_export(checkpoint, config)


def test_files_of_another_save_with_the_same_names_are_refused(
    copied: Copied, tmp_path: Path
) -> None:
    checkpoint, config = copied("tp1")
    other = write_plain(tmp_path / "iter_0000001", {"odd": torch.zeros(400_000)})
    shutil.copy(other / "__0_0.distcp", checkpoint)
    plan = plan_export(checkpoint, config)
    with pytest.raises(StoredError, match="different saves"):
        export_weights(plan, tmp_path / "out", lambda folder: None)


def test_a_piece_of_another_shape_is_refused(tmp_path: Path) -> None:
    config = tiny_config("llama", False)
    tensors = hf_to_megatron(random_weights(config), shape_from_config(config))
    right = write_plain(tmp_path / "right", tensors)
    name = "decoder.layers.0.mlp.linear_fc1.weight"
    tensors[name] = tensors[name].view(-1, 24)
    wrong = write_plain(tmp_path / "wrong", tensors)
    shutil.copy(wrong / "__0_0.distcp", right)
    with pytest.raises(StoredError, match=r"linear_fc1.*\(160, 48\).*holds bfloat16 \(320, 24\)"):
        export_weights(plan_export(right, config), tmp_path / "out", lambda folder: None)


def test_a_tensor_without_some_of_its_pieces_is_named(tmp_path: Path) -> None:
    config = tiny_config("llama", False)
    tensors = hf_to_megatron(random_weights(config), shape_from_config(config))
    checkpoint = write_plain(tmp_path / "iter_0000001", tensors)
    index = pickle.loads((checkpoint / ".metadata").read_bytes())
    entry = index.state_dict_metadata["decoder.final_layernorm.weight"]
    entry.size = torch.Size([96])
    (checkpoint / ".metadata").write_bytes(pickle.dumps(index))
    with pytest.raises(StoredError, match=r"final_layernorm\.weight hold 48 of 96 numbers"):
        plan_export(checkpoint, config)


@pytest.mark.parametrize(
    ("vocab", "said"),
    [
        (400, r"embedding\.word_embeddings\.weight has 128 rows, .*vocab_size is 400"),
        (90, r"vocab_size is 97 in the checkpoint, 90 by the config"),
    ],
)
def test_another_vocabulary_is_refused(case: Case, vocab: int, said: str) -> None:
    checkpoint, config = case("qwen3", False, "tp1")
    with pytest.raises(PlanError, match=said):
        plan_export(checkpoint, {**config, "vocab_size": vocab})


def test_more_rows_than_padding_are_refused(tmp_path: Path) -> None:
    config = tiny_config("llama", True, vocab_size=5000)
    shape = shape_from_config(config)
    tensors = hf_to_megatron(random_weights(config), shape)
    checkpoint = write_plain(tmp_path / "iter_0000001", tensors)
    with pytest.raises(PlanError, match=r"4903 more than .* padding to a multiple of 1024"):
        plan_export(checkpoint, {**config, "vocab_size": 97})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_hidden_layers": 3}, "num_layers is 2 in the checkpoint, 3 by the config"),
        ({"hidden_size": 64}, r"linear_qkv\.weight is \(2, 192, 48\), .* \(2, 192, 64\)"),
        ({"num_attention_heads": 4, "head_dim": 32}, "kv_channels is 16 in the checkpoint"),
        ({"rope_theta": 5000.0}, "rotary_base is 10000 in the checkpoint, 5000"),
        ({"architectures": ["Qwen2ForCausalLM"]}, r"missing: .*linear_qkv\.bias"),
        ({"tie_word_embeddings": True}, "untie_embeddings_and_output_weights is True"),
    ],
)
def test_a_reference_of_another_model_is_refused(
    case: Case, changed: dict[str, Any], said: str
) -> None:
    checkpoint, config = case("qwen3", False, "tp2")
    with pytest.raises(PlanError, match=said) as error:
        plan_export(checkpoint, {**config, **changed})
    assert "--reference" in str(error.value)


def test_names_outside_the_table_are_listed_or_left_out(tmp_path: Path) -> None:
    config = tiny_config("qwen2", True)
    shape = shape_from_config(config)
    extra = {f"decoder.layers.{layer}.adapter.weight": torch.ones(2) for layer in range(7)}
    moments = {"optimizer.state.exp_avg.embedding.word_embeddings.weight": torch.ones(2)}
    tensors = hf_to_megatron(random_weights(config), shape)
    checkpoint = write_plain(
        tmp_path / "iter_0000001",
        {**tensors, **extra, **moments, "rng_state": b"0"},
        megatron_args(shape, 97, 1),
    )
    plan = plan_export(checkpoint, config)
    with pytest.raises(ExtraTensorsError) as error:
        refuse_extra(plan)
    assert all(name in str(error.value) for name in (*extra, "--allow-extra"))
    report = export_weights(plan, tmp_path / "out", lambda folder: None)
    assert (report.extra, report.optimiser_tensors, report.objects) == (tuple(extra), 1, 1)
    assert read_hf(tmp_path / "out").keys() == random_weights(config).keys()


class Evil:
    """What an attacker would put into a checkpoint."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


def test_a_malicious_pickle_runs_nothing(copied: Copied, tmp_path: Path) -> None:
    checkpoint, config = copied("tp1")
    trace = tmp_path / "trace"
    common = torch.load(checkpoint / "common.pt", weights_only=False)
    common["args"].evil = Evil(trace)
    torch.save({**common, "more": [Evil(trace)]}, checkpoint / "common.pt")
    plan = plan_export(checkpoint, config)
    report = export_weights(plan, tmp_path / "out", lambda folder: None)
    assert report.tensors == 25
    assert not trace.exists()


def test_a_malicious_piece_runs_nothing(copied: Copied, tmp_path: Path) -> None:
    checkpoint, config = copied("tp1")
    trace = tmp_path / "trace"
    plan = plan_export(checkpoint, config)
    stored = plan.tensors["model.norm.weight"].source.tensor.chunks[0]
    torch.save(Evil(trace), tmp_path / "evil.pt")
    evil = (tmp_path / "evil.pt").read_bytes()
    assert len(evil) <= stored.length
    with (checkpoint / stored.file).open("rb+") as file:
        file.seek(stored.offset + stored.length - len(evil))
        file.write(evil)
    with pytest.raises(StoredError, match=r"no plain tensor|different saves"):
        export_weights(plan, tmp_path / "out", lambda folder: None)
    assert not trace.exists()


def test_a_damaged_common_file_is_named(copied: Copied) -> None:
    checkpoint, config = copied("tp1")
    (checkpoint / "common.pt").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(StoredError, match=r"common\.pt is not a whole file of torch\.save"):
        plan_export(checkpoint, config)


def test_dtypes_are_known_words(case: Case) -> None:
    with pytest.raises(PlanError, match="did you mean 'bfloat16'"):
        plan_export(*case("qwen3", False, "tp1"), dtype="bfloat")
