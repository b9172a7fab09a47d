"""Configuration files are found in a checkout and in an installation."""

from __future__ import annotations

import runpy
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import setuptools

from slime_ext.recipe import places

ROOT = Path(__file__).parents[3]


def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "__file__", str(site / "slime_ext" / "recipe" / "places.py"))
    monkeypatch.syspath_prepend(str(site))


def test_a_checkout_uses_its_own_folder() -> None:
    assert places.configs_folder() == ROOT / "configs"


def test_an_installation_uses_the_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stranger's folder `configs` lies beside it.
    for name in ("longrl_configs/models", "configs"):
        (tmp_path / name).mkdir(parents=True)
    installed(tmp_path, monkeypatch)
    assert places.configs_folder() == tmp_path / "longrl_configs"


def test_an_installation_without_them_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch)
    monkeypatch.setattr(places.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FileNotFoundError, match="longrl_configs is not installed"):
        places.configs_folder()


def test_every_file_of_configs_is_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    assert given["package_dir"] == {"longrl_tools": "tools", "longrl_configs": "configs"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [path for path in (ROOT / "configs").rglob("*") if path.is_file()]
    assert len(files) > 10
    for file in files:
        folder = file.parent.relative_to(ROOT / "configs").parts
        assert ".".join(("longrl_configs", *folder)) in given["packages"], file
        assert any(fnmatch(file.name, pattern) for pattern in patterns), file
