"""The step hook as this slime loads and calls it, read from its source: Megatron is not here."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from slime_ext import hooks

NAME = "custom_before_train_step_hook"


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text())
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def test_slime_finds_the_hook_by_its_path() -> None:
    from slime.utils.misc import load_function

    assert load_function("slime_ext.hooks.before_train_step") is hooks.before_train_step


def test_slime_calls_it_with_the_parameters_it_has(slime_dir: Path) -> None:
    model = functions(slime_dir / "slime" / "backends" / "megatron_utils" / "model.py")
    calls = [
        node
        for node in ast.walk(model["train_one_step"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == NAME
    ]
    assert len(calls) == 1
    assert not calls[0].keywords
    given = [word.id for word in calls[0].args if isinstance(word, ast.Name)]
    assert given == list(inspect.signature(hooks.before_train_step).parameters)


def test_it_is_called_before_the_forward_pass(slime_dir: Path) -> None:
    model = functions(slime_dir / "slime" / "backends" / "megatron_utils" / "model.py")
    lines = {
        node.func.id: node.lineno
        for node in ast.walk(model["train_one_step"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert lines[NAME] < lines["forward_backward_func"]


def test_the_functions_it_calls_are_there(slime_dir: Path) -> None:
    folder = slime_dir / "slime"
    saving = functions(folder / "backends" / "megatron_utils" / "model.py")["save"]
    assert parameters(saving) == ["iteration", "model", "optimizer", "opt_param_scheduler"]
    assert parameters(functions(folder / "utils" / "distributed_utils.py")["get_gloo_group"]) == []
    actor = (folder / "backends" / "megatron_utils" / "actor.py").read_text()
    assert "maybe_finalize_async_save(blocking=True)" in actor
    assert "save(rollout_id, self.model, self.optimizer, self.opt_param_scheduler)" in actor
