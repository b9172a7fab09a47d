"""What a check may know besides the recipe: where runs lie, whether the network may be used.

One design choice: absence is judged in one place. With `offline`, what another machine holds is
skipped; without it, this is the machine the run will start on, and what is absent is a failure.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from launch.preflight.finding import Area
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape


@dataclass
class Context:
    """One call of `longrl check`; `recipe` is `asked` with real files for `builtin:` and `hub:`."""

    recipe: Recipe
    asked: Recipe
    runs: Path
    offline: bool = False
    interpreter: str | None = None
    """Python whose packages the job will import; None takes cluster.python."""

    @property
    def cluster(self) -> bool:
        """Whether the run needs slime."""
        return self.recipe.backend == "slime"

    @property
    def python(self) -> str:
        """The interpreter of the job."""
        return self.interpreter or self.recipe.cluster.python

    @property
    def host_elsewhere(self) -> str:
        """Why slime's absence from this machine is in order; empty where slime is here, or ought
        to be."""
        if (Path(self.recipe.slime.path) / "train.py").is_file():
            return ""
        if self.recipe.cluster.container != "none":
            return f"slime lies inside {self.recipe.cluster.image}"
        return f"{self.recipe.slime.path} is on another machine" if self.offline else ""

    @property
    def folder(self) -> RunFolder:
        """The run folder, which need not exist yet."""
        return RunFolder(self.runs / self.recipe.name)

    @property
    def model(self) -> Path | None:
        """The model folder, where this machine has it."""
        path = Path(self.recipe.model.path)
        return path if path.is_dir() else None

    @property
    def no_tokenizer(self) -> str:
        """Why no tokenizer can be loaded here; empty where one can be tried."""
        if self.model is None:
            return "the model folder is not here"
        if importlib.util.find_spec("transformers") is None:
            return "the package transformers is not installed here"
        return ""

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the model folder; raises what transformers raises (OSError,
        ValueError)."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.recipe.model.path)

    @cached_property
    def shape(self) -> ModelShape:
        """The model's shape, from its folder or from the named facts; raises ExplainedError."""
        from launch.models.facts import shape_for

        return shape_for(self.recipe)

    @property
    def shape_known(self) -> bool:
        """Whether folder, facts or package say how large the model is."""
        model = self.recipe.model
        return bool(self.model or model.facts or model.path.startswith("builtin:"))

    @property
    def missing_data(self) -> list[str]:
        """Data files of the recipe that this machine lacks, as `KEY = VALUE`."""
        data = self.recipe.data
        files = {"data.train": data.train}
        if data.eval is not None:
            files["data.eval"] = data.eval
        files |= {f"data.eval_sets.{name}": file for name, file in data.eval_sets.items()}
        return [f"{key} = {file!r}" for key, file in files.items() if not Path(file).is_file()]

    def absent(self, area: Area, name: str, message: str, remedy: str, instead: str) -> None:
        """Something is not here: skipped offline (`instead` says what that leaves unseen)."""
        if self.offline:
            area.skip(name, f"{message}; {instead}")
        else:
            area.fail(name, message, remedy)
