"""The dashboard: its spec as it was reviewed, its metrics as they are named, its patterns as meant.

`python -m tests.launch.wandb_sync.test_dashboard` writes the golden file anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from launch.wandb_sync.dashboard import OPEN, workspace
from launch.wandb_sync.panels import SECTIONS, PanelSpec
from slime_ext.metrics.names import METRICS, TRAINER, describe

GOLDEN = Path(__file__).with_name("dashboard.json")
PANELS = [(name, panel) for name, panels in SECTIONS.items() for panel in panels]


def spec() -> dict[str, Any]:
    """What would be sent, without the ids that are drawn."""
    # Only saving needs the network, and wandb-workspaces serialises nowhere else.
    text = (
        workspace("us", "longrl")._to_model().spec.model_dump_json(by_alias=True, exclude_none=True)
    )
    made: dict[str, Any] = json.loads(text)
    for section in made["section"]["panelBankConfig"]["sections"]:
        for panel in section["panels"]:
            del panel["__id__"]
    return made


def test_the_spec_is_the_golden_one() -> None:
    assert spec() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(("section", "panel"), PANELS)
def test_every_metric_of_a_panel_has_a_name(section: str, panel: PanelSpec) -> None:
    for key in panel.keys:
        if panel.stream == "train":
            assert key in TRAINER
        else:
            assert describe(key.removesuffix("*") + "x" if key.endswith("*") else key) is not None
            assert (
                key.startswith(("reward/", "length", "judge/")) or key in METRICS or _grouped(key)
            )


def _grouped(key: str) -> bool:
    """Whether the description of the group spells the key out."""
    group, _, name = key.partition("/")
    return name == "*" or name in METRICS.get(f"{group}/*", "")


def test_the_sections_that_were_asked_for_are_there() -> None:
    assert {"Reward", "Evidence", "Response length", "Truncation", "Judge health", "Groups"} < {
        *SECTIONS,
        "",
    }
    assert set(OPEN) < set(SECTIONS)
    assert len(PANELS) == len(set(PANELS))


@pytest.mark.parametrize(
    ("panel", "name", "meant"),
    [
        (PanelSpec("", ("reward/*",)), "rollout/reward/total", True),
        (PanelSpec("", ("reward/*",)), "rollout/source/a/reward/total", False),
        (PanelSpec("", ("judge/no_verdict/*",)), "rollout/judge/no_verdict/timeout", True),
        (PanelSpec("", ("judge/no_verdict/*",)), "rollout/judge/latency_mean_s", False),
        (PanelSpec("", ("reward/outcome",), "eval"), "eval/set/reward/outcome", True),
        (PanelSpec("", ("reward/outcome",), "eval"), "eval/set/source/a/reward/outcome", False),
        (PanelSpec("", ("length/mean", "length/p95"), "eval"), "eval/set/length/p95", True),
        (PanelSpec("", ("length/mean", "length/p95"), "eval"), "eval/set/length/max", False),
    ],
)
def test_a_pattern_takes_what_is_meant(panel: PanelSpec, name: str, meant: bool) -> None:
    assert bool(re.match(panel.pattern(), name)) == meant
    assert panel.names() == ()


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(spec(), indent=1) + "\n")
