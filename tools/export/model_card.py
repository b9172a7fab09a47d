"""The model card: README.md of an exported folder.

One design choice: every line comes from the run's own records or from the base model's folder; what
they do not say is left out, so nobody has to take anything back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w

from .configs import read_config
from .run_facts import RunFacts, own_version
from .side_files import CARD

_LICENCE_KEYS = ("license", "license_name", "license_link")
_HUB = re.compile(r"[\w.-]+/[\w.-]+")


def write_card(out: Path, reference: Path, name: str, facts: RunFacts | None) -> None:
    """Write README.md into `out`, for a model exported from a run, or from a checkpoint that lies
    alone (`facts` is None), which is called `name` then."""
    partial = out / f".{CARD}.partial"
    partial.write_text("\n".join(_card(name, reference, facts)) + "\n", encoding="utf-8")
    partial.replace(out / CARD)


def _card(name: str, reference: Path, facts: RunFacts | None) -> Iterator[str]:
    base = _base_model(reference, facts)
    title = f"{facts.recipe.name}, step {facts.iteration}" if facts else name
    yield from _front_matter(reference, base)
    yield f"\n# {title}\n"
    start = f"`{base}`" if base else "a base model"
    if facts is None:
        yield f"Exported from a Megatron checkpoint of a model that began as {start}."
    else:
        yield (
            f"Trained from {start} by reinforcement learning with LongRL, reward "
            f"`{facts.recipe.reward.kind}`, outcome `{facts.recipe.outcome.kind}`."
        )
        yield from _figures(facts)
        yield "\n## Data\n"
        yield from (f"- {name}: {said}" for name, said in facts.data.items())
        yield "\n## Recipe\n\n```toml"
        yield tomli_w.dumps(facts.shown()).rstrip()
        yield "```"
    yield "\n## Software\n"
    if facts and facts.packages:
        yield f"- trained with {_versions(facts.packages)}"
    yield f"- exported with longrl {own_version()}"


def _front_matter(reference: Path, base: str | None) -> Iterator[str]:
    yield "---"
    yield "library_name: transformers"
    yield "pipeline_tag: text-generation"
    if base:
        yield f"base_model: {base}"
    yield from (f"{key}: {value}" for key, value in licence(reference).items())
    yield "tags:\n- reinforcement-learning\n- longrl\n---"


def _figures(facts: RunFacts) -> Iterator[str]:
    if facts.figures:
        yield "\n## Held-out figures\n"
        yield "| data | metric | before | now |\n|---|---|---|---|"
    for dataset, pairs in facts.figures.items():
        for metric, (before, now) in pairs.items():
            start = "" if before is None else f"{before:.4g}"
            yield f"| {dataset} | {metric} | {start} | {now:.4g} |"


def licence(reference: Path) -> dict[str, str]:
    """The licence keys at the head of the base model's own card; `other` where it has only a
    licence file, nothing where it says nothing."""
    card = reference / CARD
    head = _head(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else ""
    found: dict[str, str] = {}
    for line in head.splitlines():
        key, _, value = line.partition(":")
        if key in _LICENCE_KEYS and value.strip():
            found[key] = value.strip()
    files = any(path.name.lower().startswith("licen") for path in reference.iterdir())
    return found or ({"license": "other"} if files else {})


def _head(text: str) -> str:
    """What stands between the two lines of dashes at the top."""
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    return parts[1] if len(parts) == 3 and not parts[0].strip() else ""


def _base_model(reference: Path, facts: RunFacts | None) -> str | None:
    """Repository of the base model, where recipe or config name one."""
    config: dict[str, Any] = read_config(reference)
    for name in (facts.recipe.model.hub if facts else None, config.get("_name_or_path")):
        if name and _HUB.fullmatch(name) and not Path(name).exists():
            return str(name)
    return None


def _versions(packages: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())
