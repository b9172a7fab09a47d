"""Names of published data sets."""

from __future__ import annotations

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.hub.names import HubName, is_hub, parse_hub


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hub:THU-KEG/LongTraceRL", HubName("THU-KEG", "LongTraceRL")),
        ("hub:a/b:train[64:]", HubName("a", "b", None, "train[64:]")),
        ("hub:a/b:train[:5%]+test", HubName("a", "b", None, "train[:5%]+test")),
        ("hub:a/b.c@v1.0:test", HubName("a", "b.c", "v1.0", "test")),
        ("hub:a/b@refs/pr/1", HubName("a", "b", "refs/pr/1")),
    ],
)
def test_the_parts_of_a_name(text: str, name: HubName) -> None:
    assert is_hub(text)
    assert parse_hub(text) == name
    assert parse_hub(str(name)) == name


@pytest.mark.parametrize(
    "text", ["hub:", "hub:a", "hub:a/b/c", "hub:a/b:", "hub:a b/c", "hub:a/b@"]
)
def test_another_form_is_refused_with_the_right_ones(text: str) -> None:
    with pytest.raises(DataError, match="write hub:OWNER/NAME"):
        parse_hub(text)


def test_what_changes_the_rows_changes_the_key() -> None:
    names = [HubName("a", "b"), HubName("a", "b", "v1"), HubName("a", "b", None, "test")]
    keys = {name.key(form) for name in names for form in ("longtracerl", "longrlvr")}
    assert len(keys) == 6
