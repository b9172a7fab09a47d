"""Says why nothing here was run; collected only where slime is not there."""

from __future__ import annotations

import pytest

from tests.slime_host.conftest import NO_SLIME


@pytest.mark.skip(reason=NO_SLIME)
def test_slime() -> None:
    raise AssertionError
