"""The model card tells recipe, data, figures and software, and nothing of the machine."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from longrl_tools.export.model_card import licence, write_card
from longrl_tools.export.run_facts import gather, run_of

from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe

ROOT = Path(__file__).parents[3]
Folders = Callable[..., Path]
SECRET = "hunter2-and-more"
DATA = b'{"id": "1"}\n'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run whose recipe holds places and the address of a judge with a password in it."""
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    folder = RunFolder(tmp_path / "runs" / "mine")
    folder.path.mkdir(parents=True)
    train = tmp_path / "secret_place" / "train.jsonl"
    train.parent.mkdir()
    train.write_bytes(DATA)
    endpoint = f'{{url="http://me:{SECRET}@judge.cluster:80/v1", key_env="JUDGE_KEY"}}'
    recipe = load_recipe(
        ROOT / "configs" / "embedded" / "lab.toml",
        [
            "name=mine",
            'model.hub="Some/Model-1B"',
            f'model.path="{tmp_path}/secret_place/model"',
            f'data.train="{train}"',
            'data.eval="hub:Some/Set:test"',
            'outcome.kind="judge"',
            'outcome.judge.protocol="aa_lcr"',
            'outcome.judge.model="Judge"',
            f"outcome.judge.endpoints=[{endpoint}]",
            f'outcome.judge.cache="{tmp_path}/secret_place/cache.sqlite"',
            f'extra.slime.some-flag="--x={tmp_path}/secret_place/y"',
            'cluster.account="my-account"',
        ],
    ).recipe
    write_recipe(folder, recipe)
    records = Records(folder.path)
    for step, value in ((0, 0.125), (20, 0.75)):
        metrics = {"reward/outcome": value, "length/mean": 100.0, "reward/unknown": 1.0}
        records.write("eval", step, metrics, dataset="eval")
    (folder.path / "attempts" / "1").mkdir(parents=True)
    packages = {"torch": "2.13.0", "sglang": None}
    env = {"packages": packages, "host": "my-host", "variables": ["JUDGE_KEY"]}
    (folder.path / "attempts" / "1" / "env.json").write_text(json.dumps(env))
    return folder


@pytest.fixture
def card(run: RunFolder, good: Folders, tmp_path: Path) -> str:
    checkpoint = run.checkpoints / "iter_0000020"
    out = tmp_path / "out"
    out.mkdir()
    write_card(out, good(), "mine", gather(run, checkpoint))
    return (out / "README.md").read_text()


def test_the_head_is_what_hubs_read(card: str) -> None:
    head = yaml.safe_load(card.split("---")[1])
    assert head == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "base_model": "Some/Model-1B",
        "license": "apache-2.0",
        "tags": ["reinforcement-learning", "longrl"],
    }


def test_figures_data_recipe_and_software(card: str) -> None:
    assert "# mine, step 20" in card
    assert "| eval | reward/outcome | 0.125 | 0.75 |" in card
    assert "reward/unknown" not in card
    assert f"train.jsonl, SHA-256 {hashlib.sha256(DATA).hexdigest()}\n" in card
    assert "- eval: Some/Set:test, not at hand" in card
    assert "trained with torch 2.13.0\n" in card
    recipe = tomllib.loads(card.split("```toml")[1].split("```")[0])
    assert recipe["rollout"]["group_size"] == 8
    judge = recipe["outcome"]["judge"]
    assert (judge["protocol"], judge["model"]) == ("aa_lcr", "Judge")
    assert not {"endpoints", "cache", "attempts", "concurrency"} & set(judge)
    assert recipe["data"]["train"] == "train.jsonl"
    assert recipe["extra"]["slime"]["some-flag"] == "--x=y"


@pytest.mark.parametrize(
    "word", [SECRET, "secret_place", "judge.cluster", "my-account", "my-host", "JUDGE_KEY", "/root"]
)
def test_nothing_of_the_machine_is_told(card: str, word: str) -> None:
    assert word not in card


def test_a_checkpoint_knows_its_run_by_where_it_lies(run: RunFolder, tmp_path: Path) -> None:
    for checkpoint in ("iter_0000020", "best/iter_0000020"):
        found = run_of(run.checkpoints / checkpoint)
        assert found is not None
        assert found.path == run.path
    assert run_of(tmp_path / "elsewhere" / "iter_0000020") is None


def test_a_checkpoint_without_a_run(good: Folders, tmp_path: Path) -> None:
    write_card(tmp_path, good(), "model-x", None)
    text = (tmp_path / "README.md").read_text()
    assert "# model-x" in text
    assert "license: apache-2.0" in text
    assert "exported with longrl" in text


def test_licences(tmp_path: Path) -> None:
    assert licence(tmp_path) == {}
    (tmp_path / "LICENSE").write_text("text")
    assert licence(tmp_path) == {"license": "other"}
    (tmp_path / "README.md").write_text("# license: mit\n---\nlicense: mit\n---\n")
    assert licence(tmp_path) == {"license": "other"}
    head = "---\nlicense: other\nlicense_name: mine\nlicense_link: LICENSE\ntags:\n- a\n---\n"
    (tmp_path / "README.md").write_text(head)
    assert licence(tmp_path) == {
        "license": "other",
        "license_name": "mine",
        "license_link": "LICENSE",
    }
