"""The GPUs that CUDA_VISIBLE_DEVICES leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.job.devices import DeviceError, count, main, take, visible

UUIDS = "GPU-8f7c,GPU-9a1b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("NoDevFiles", None),
        ("", []),
        ("0", ["0"]),
        ("4,5", ["4", "5"]),
        (" 0 , 1 ,", ["0", "1"]),
        (UUIDS, ["GPU-8f7c", "GPU-9a1b"]),
        ("MIG-1/2/0", ["MIG-1/2/0"]),
    ],
)
def test_what_the_variable_names(text: str | None, expected: list[str] | None) -> None:
    assert visible(text) == expected


@pytest.mark.parametrize("text", [None, "NoDevFiles", "0,1", "4,5,6", UUIDS])
def test_as_many_as_the_recipe_counts_on_are_announced(text: str | None) -> None:
    assert count(text, 2) == 2


@pytest.mark.parametrize(("text", "shown"), [("", 0), ("3", 1), ("GPU-8f7c", 1)])
def test_too_few_are_an_error_with_both_remedies(text: str, shown: int) -> None:
    with pytest.raises(DeviceError, match=rf"shows {shown} GPUs.*--gres=gpu:8.*= {shown}$"):
        count(text, 8)


@pytest.mark.parametrize(
    ("text", "first", "number", "expected"),
    [
        (None, 4, 4, "4,5,6,7"),
        ("NoDevFiles", 6, 2, "6,7"),
        ("7,6,5,4,3,2,1,0", 6, 2, "1,0"),
        ("0,1,2,3,4,5,6,7", 8, 0, ""),
    ],
)
def test_a_service_takes_its_part(text: str | None, first: int, number: int, expected: str) -> None:
    assert take(text, 8, first, number) == expected


@given(st.lists(st.text("0123456789GPU-", min_size=1), min_size=1, max_size=8))
def test_as_many_as_are_listed_are_seen(names: list[str]) -> None:
    assert count(",".join(names), len(names)) == len(names)
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES"):
        count(",".join(names), len(names) + 1)


def test_the_script_gets_a_number_or_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["devices", "--expected", "2"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert main() == 0
    assert capsys.readouterr().out == "2\n"
    monkeypatch.setattr("sys.argv", ["devices", "--expected", "2", "--take", "1", "1"])
    assert main() == 0
    assert capsys.readouterr().out == "5\n"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main() == 1
    assert "shows 0 GPUs" in capsys.readouterr().err
