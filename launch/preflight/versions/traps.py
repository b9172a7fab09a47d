"""Known incompatibilities, each a function of what the probes found.

One design choice: a trap says what would happen in the run, because every one of them lets the
import pass and bites later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from launch.preflight.finding import Area
from launch.preflight.versions.run import Probe
from slime_ext.recipe.schema import Recipe

Trap = Callable[[Recipe, Mapping[str, Probe], Area], None]
LEAST_PYTHON = (3, 11)


def old_python(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """The job imports our hooks, whose syntax and standard library are those of 3.11."""
    version = probes["python"].version or ""
    if version and _numbers(version) < LEAST_PYTHON:
        area.fail(
            "python",
            f"the job's Python is {version}, the hooks need 3.11",
            "use an image with Python 3.11 or newer",
        )


def absent_hooks(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """slime loads our hooks by import path, in a Python that need not be the one that checks."""
    probe = probes["longrl"]
    if probe.ending != "works":
        area.fail(
            "longrl",
            f"slime_ext.hooks does not import in the job's Python: {probe.error}",
            f"{recipe.cluster.python} -m pip install -e {Path(__file__).parents[3]}",
        )


def wrong_slime(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """The package index has another project of this name."""
    probe = probes["slime"]
    if probe.ending == "broken" and "No module named 'slime.utils'" in probe.error:
        area.fail(
            "slime",
            f"the installed package `slime` {probe.version or ''} is another project of that name"
            f"{_summary(probe)}",
            f"pip uninstall slime && pip install -e {recipe.slime.path} --no-deps",
        )


def other_release(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """Flags are checked against the list of one release; the other ignores some in silence."""
    fan_out = probes["slime"].facts.get("fan_out")
    if fan_out is not None and fan_out != (recipe.slime.version != "v0.2.4"):
        found = "v0.3.1 or newer" if fan_out else "v0.2.4 or older"
        area.fail(
            "slime",
            f"slime.version = {recipe.slime.version!r}, and what is imported is {found}",
            "set slime.version, or slime.path, to the other",
        )


def wrong_apex(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """The package index has another project of this name, too."""
    probe = probes["apex"]
    if probe.ending == "broken" and "No module named 'apex." in probe.error:
        area.fail(
            "apex",
            f"the installed package `apex` {probe.version or ''} is not NVIDIA's{_summary(probe)}: "
            "Megatron finds no FusedAdam in it",
            "pip uninstall apex, then build NVIDIA's from its repository (slime's image has it)",
        )


def replaced_megatron(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """Megatron-LM bears the name megatron-core; our extra `embedded` installs a wheel over it."""
    probe = probes["megatron"]
    root = Path(recipe.slime.megatron_path)
    remedy = (
        f"pip uninstall megatron-core && pip install -e {root} --no-deps; longrl's extra "
        "`embedded` must not be installed in slime's image"
    )
    file = probe.facts.get("file")
    if file is not None and not Path(file).is_relative_to(root):
        area.fail("megatron", f"megatron.core is imported from {file}, not from {root}", remedy)
    elif probe.facts.get("training") is False:
        area.fail(
            "megatron",
            "megatron.training is missing: this is the wheel of megatron-core "
            "alone, without the trainer",
            remedy,
        )
    elif probe.facts.get("from_index"):
        area.fail(
            "megatron",
            f"a wheel of megatron-core {probe.version or ''} is installed beside {root}: a process "
            "whose PYTHONPATH lacks that folder imports the wheel",
            remedy,
        )


def numpy_two(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """slime's Megatron actor asserts numpy 1 when it starts."""
    version = probes["numpy"].version or ""
    if version and _numbers(version) >= (2,):
        area.fail(
            "numpy",
            f"numpy {version}: slime's Megatron actor stops at 2 and above",
            'pip install "numpy==1.26.4" "scipy==1.17.1"',
        )


def wandb_suffix(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """slime appends a random suffix to the group by a function that wandb 0.31 no longer has."""
    probe = probes.get("wandb")
    if probe is None or probe.facts.get("generate_id") is not False:
        return
    if "disable-wandb-random-suffix" in recipe.extra.slime or disables_suffix(recipe):
        area.ok("wandb suffix", f"off, which wandb {probe.version} needs")
    else:
        area.fail(
            "wandb suffix",
            f"wandb {probe.version} has no wandb.util.generate_id, which "
            "slime's random suffix calls: the run ends at its start",
            "set extra.slime.disable-wandb-random-suffix = true",
        )


def disables_suffix(recipe: Recipe) -> bool:
    """Whether the command line turns the suffix off by itself."""
    from launch.arguments import slime_arguments

    groups = slime_arguments(recipe, Path("runs") / recipe.name)
    return any("--disable-wandb-random-suffix" in words for words in groups.values())


TRAPS: Sequence[Trap] = (
    old_python,
    absent_hooks,
    wrong_slime,
    other_release,
    wrong_apex,
    replaced_megatron,
    numpy_two,
    wandb_suffix,
)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int(part) for part in parts[:2] if part.isdigit())


def _summary(probe: Probe) -> str:
    summary = probe.facts.get("summary")
    return f" ({summary})" if summary and summary != "UNKNOWN" else ""
