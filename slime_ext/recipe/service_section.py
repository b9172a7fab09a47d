"""A server the job starts beside the training program: a judge, a reward model.

One design choice: one section is one process, on a node of its own or beside Ray on the first node;
several copies are several sections, so that each has a name, an address and a log of its own.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from slime_ext.recipe.section import Section


class ServiceSection(Section):
    """One server; its host reaches the run as the variable `LONGRL_SERVICE_NAME`."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    command: str
    """A line of bash, run in the run's environment; the server must not go to the background.
    `$HOST` is the address of its node."""
    port: int = Field(gt=0, lt=65536)
    """Where it listens."""
    health: str = "/health"
    """Path that answers with a status below 400 once it serves."""
    own_node: bool = False
    """A node of its own with all its GPUs, beside `cluster.nodes`; else the first of those."""
    gpus: int = Field(default=0, ge=0)
    """GPUs of the first node taken away from the run; the last ones of that node."""
    ready_timeout_s: float = Field(default=1800.0, gt=0)
    """How long it may take to answer, the loading of a model included."""

    @property
    def variable(self) -> str:
        """The variable that holds its host."""
        return "LONGRL_SERVICE_" + self.name.upper().replace("-", "_")

    @model_validator(mode="after")
    def _gpus_are_shared_only(self) -> ServiceSection:
        if self.own_node and self.gpus:
            raise ValueError(
                f"service {self.name!r} has a node of its own with all its GPUs; leave gpus out"
            )
        return self
