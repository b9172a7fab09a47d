"""The command line of slime: it can be built, and the host knows every flag of it.

One design choice: this is the command `longrl train` would give, not a second reading of the
recipe, so nothing can pass here and fail there.
"""

from __future__ import annotations

from launch.arguments import slime_arguments
from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.recipe.schema import Recipe


def check_arguments(recipe: Recipe, context: Context) -> list[Finding]:
    """Builds the argument list; raises ExplainedError for a flag that is unknown or idle."""
    area = Area("arguments")
    groups = slime_arguments(recipe, context.folder.path)
    flags = sum(word.startswith("--") for words in groups.values() for word in words)
    area.ok("flags", f"{flags} in {len(groups)} groups, all known to slime {recipe.slime.version}")
    return area.findings
