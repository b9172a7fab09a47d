"""Scripts are read as bash would pass their words on, and never executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.flags.check import split
from launch.script_import.read import Script, ScriptError, read_script
from tests.launch.script_import.script import SCRIPT


def flags(script: Script) -> dict[str, tuple[str, ...]]:
    return {one.flag: one.values for one in split(script.argv)}


def test_the_words_that_reach_train_py() -> None:
    found = flags(read_script(SCRIPT, {"NODES": "4", "HERE": "/here"}))
    assert found["--hf-checkpoint"] == ("/here/models/Qwen3-4B-Thinking-2507",)
    assert found["--rollout-num-gpus"] == ("32",)
    assert found["--rollout-stop-token-ids"] == ("151643", "151645")
    assert found["--normalization"] == ("RMSNorm",)
    assert found["--rotary-base"] == ("5000000",)
    assert found["--sglang-json-model-override-args"] == ('{"max_position_embeddings": 41000}',)
    assert found["--tis-clip"] == ("2.0",)
    assert "--fp16" not in found


def test_what_only_the_machine_knows_stays_as_written() -> None:
    script = read_script(SCRIPT)
    found = flags(script)
    assert found["--actor-num-nodes"] == ("${NODES}",)
    assert found["--rollout-num-gpus"] == ("$((${NODES}*8))",)
    assert found["--prompt-data"] == ("${HERE}/data/train.jsonl",)
    assert found["--rollout-num-gpus-per-engine"] == ("${ENGINE_GPUS}",), "set under a condition"
    assert script.unknown == ["ENGINE_GPUS", "HERE", "NODES", "PROJECT", "WANDB_API_KEY"]
    assert script.commented == ["--fp16"]


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("python train.py --a '$X' \"$X\" $X", ["--a", "$X", "1 2", "1", "2"]),
        ("python train.py --a a\\ b 'c'\"d\"e", ["--a", "a b", "cde"]),
        ("python train.py --a ''", ["--a", ""]),
        ("python train.py --a x#y # z", ["--a", "x#y"]),
        ("python train.py \\\n  --a 1 \\\n  --b 2", ["--a", "1", "--b", "2"]),
        ("A=(--a 1)\nA+=(--b 2)\npython train.py ${A[@]}", ["--a", "1", "--b", "2"]),
        ('A=("--a" "b c")\npython train.py "${A[@]}"', ["--a", "b c"]),
        ('A=("--a" "b c")\npython train.py ${A[@]}', ["--a", "b", "c"]),
        ("N=3\npython train.py --a $((N*2+1)) $((7/2)) $((N-5))", ["--a", "7", "3", "-2"]),
        ("export Y=2\npython train.py --a ${Y} ${Z:-9} ${Z}", ["--a", "2", "9", "${Z}"]),
        ('python train.py --a ${Z:-"/r"}/x', ["--a", "/r/x"]),
        ("python train.py --a 1 > log 2>&1", ["--a", "1", ">", "log", "2>"]),
        ("python /opt/slime/train_async.py --a 1; echo done", ["--a", "1"]),
        ("cat <<'END'\npython train.py --no\nEND\npython train.py --yes", ["--yes"]),
    ],
)
def test_words_are_split_as_bash_does(text: str, argv: list[str]) -> None:
    assert read_script("X='1 2'\n" + text).argv == argv


def test_a_comment_inside_a_command_ends_it() -> None:
    script = read_script("python train.py \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3\n")
    assert script.argv == ["--a", "1"]
    assert script.lost == ["--c", "3"]
    assert script.commented == ["--b 2 \\"]


def test_arrays_and_files_that_are_not_here_are_named() -> None:
    script = read_script('source "${DIR}/models/x.sh"\npython train.py ${MODEL_ARGS[@]} --a 1')
    assert script.argv == ["--a", "1"]
    assert script.missing == ["MODEL_ARGS"]
    assert script.sourced == ["${DIR}/models/x.sh"]


def test_nothing_is_executed(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    text = f"A=$(touch {trap})\nB=`touch {trap}`\npython train.py --a $(touch {trap}) $A $((1**9))"
    read_script(text)
    assert not trap.exists()


def test_a_script_without_a_trainer_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"calls train\.py"):
        read_script("echo hello")


@given(st.text(alphabet="\"'$(){}[]\\#\n =;&<|aA1-", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(read_script(f"python train.py --x\n{text}"), Script)
