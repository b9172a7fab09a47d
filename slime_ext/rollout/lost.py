"""A step of which nothing came back.

One design choice: it stops the run. Its samples would all be masked, the optimiser would still move
by its momentum, and the next step would meet the same engines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from slime_ext.errors import ExplainedError
from slime_ext.host.types import Sample
from slime_ext.metrics.sample_scores import lost_reason


class NothingSampledError(ExplainedError, RuntimeError):
    """Every response of a step was lost."""


def require_answers(step: int, samples: Sequence[Sample]) -> None:
    """Raise NothingSampledError where no sample of `step` has a whole response."""
    reasons = [lost_reason(sample) for sample in samples]
    if not reasons or None in reasons:
        return
    counted = ", ".join(f"{n} {reason}" for reason, n in Counter(reasons).most_common())
    raise NothingSampledError(
        f"all {len(samples)} responses of step {step} were lost ({counted}); what the engines "
        "answered is among the warnings before this line. Put that right and start the run again: "
        "it goes on from its newest checkpoint"
    )
