"""Packages of the job: real imports in child processes, over folders of stand-in packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.preflight.finding import Area, Finding
from launch.preflight.versions import check as versions
from launch.preflight.versions.check import check_versions, judge
from launch.preflight.versions.known import MEGATRON, RELEASED_WITH
from launch.preflight.versions.probe import PROBES
from launch.preflight.versions.run import Probe, run_probes
from tests.launch.preflight.conftest import MakeContext, named

Package = Callable[..., Path]


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """package(DIST, VERSION, {FILE: CODE}, origin=..., summary=...) installs one into a folder."""

    def install(
        dist: str,
        version: str,
        files: dict[str, str],
        *,
        summary: str = "made up",
        from_index: bool = True,
    ) -> Path:
        site = tmp_path / "site"
        for name, code in files.items():
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        info = site / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {dist}\nVersion: {version}\nSummary: {summary}\n")
        if not from_index:
            (info / "direct_url.json").write_text("{}")
        return site

    return install


def probe(name: str, site: Path, longest_s: float = 60.0) -> Probe:
    return run_probes([name], sys.executable, [str(site)], longest_s)[name]


FAN_OUT = "class Sample:\n    rollout_id = None\n"


def test_a_package_that_works(package: Package) -> None:
    site = package("slime", "0.3.1", {"slime/__init__.py": "", "slime/utils/types.py": FAN_OUT})
    found = probe("slime", site)
    assert (found.ending, found.version) == ("works", "0.3.1")
    assert found.facts["fan_out"] is True


def test_chatter_on_import_does_not_hide_the_answer(package: Package) -> None:
    code = "print('longrl is not here'); import sys; print('warning', file=sys.stderr)\n" + FAN_OUT
    site = package("slime", "0.3.1", {"slime/__init__.py": "", "slime/utils/types.py": code})
    assert probe("slime", site).ending == "works"


@pytest.mark.parametrize(
    ("code", "ending", "error"),
    [
        ("raise ImportError('libcuda.so.1: cannot open')", "broken", "libcuda.so.1"),
        ("import os; os.abort()", "crashed", "signal 6"),
        ("import sys; sys.exit(3)", "broken", "exit code 3"),
    ],
)
def test_a_package_that_does_not(package: Package, code: str, ending: str, error: str) -> None:
    site = package("sglang", "0.5.9", {"sglang/__init__.py": "", "sglang/srt/server_args.py": code})
    found = probe("sglang", site)
    assert found.ending == ending
    assert error in found.error
    assert found.version == "0.5.9"


def test_a_package_that_hangs_is_given_up(package: Package) -> None:
    site = package("apex", "0.1", {"apex/__init__.py": "import time; time.sleep(600)"})
    found = probe("apex", site, longest_s=2.0)
    assert found.ending == "slow"


def test_an_absent_package() -> None:
    found = run_probes(["slime"], sys.executable, [])["slime"]
    assert found.ending == "absent"
    assert "slime" in found.error


def test_the_probes_that_this_machine_can_answer() -> None:
    root = str(Path(__file__).parents[3])
    found = run_probes(["python", "longrl", "torch", "numpy"], sys.executable, [root])
    assert {one.ending for one in found.values()} == {"works"}, found
    assert found["python"].version == "{}.{}.{}".format(*sys.version_info[:3])
    assert found["torch"].facts["cuda"] == 0
    assert "product" in found["torch"].facts["call"]


def works(name: str, version: str | None = None, **facts: Any) -> Probe:
    return Probe(name, "works", {"version": version, "call": "called", **facts})


def broken(name: str, error: str, **facts: Any) -> Probe:
    return Probe(name, "broken", facts, error)


@pytest.fixture
def findings(make: MakeContext) -> Callable[..., list[Finding]]:
    """findings(PROBE, ..., SECTION={...}): what is said of these beside an image that is whole."""

    def run(*probes: Probe, **changes: Any) -> list[Finding]:
        context = make(**changes)
        version = context.recipe.slime.version
        megatron = f"{context.recipe.slime.megatron_path}/megatron/core/__init__.py"
        image = {
            "python": works("python", "3.12.3"),
            "longrl": works("longrl", "0.1"),
            "slime": works("slime", "0.3.1", fan_out=version == "v0.3.1"),
            "megatron": works("megatron", "0.16", file=megatron, training=True, from_index=False),
            "torch": works("torch", "2.9.1+cu129", cuda=8),
            "apex": works("apex", "0.1"),
            "ray": works("ray", "2.60.0"),
            "numpy": works("numpy", "1.26.4"),
        }
        image |= {name: works(name, pin) for name, pin in RELEASED_WITH[version].items()}
        image |= {one.package: one for one in probes}
        area = Area("versions")
        judge(context.recipe, image, area)
        return area.findings

    return run


Findings = Callable[..., list[Finding]]


def test_a_python_without_our_hooks_is_named_with_what_to_type(findings: Findings) -> None:
    absent = Probe("longrl", "absent", {}, "ModuleNotFoundError: No module named 'slime_ext'")
    (finding,) = [one for one in findings(absent) if one.status != "pass"]
    assert "No module named 'slime_ext'" in finding.message
    assert finding.remedy.startswith("python3 -m pip install -e /")


@pytest.mark.parametrize("version", ["v0.3.1", "v0.2.4"])
def test_the_image_of_each_release_passes(findings: Findings, version: str) -> None:
    found = findings(slime={"version": version})
    assert {one.status for one in found} == {"pass"}, found


def test_another_version_than_the_images_is_untested(findings: Findings) -> None:
    finding = named(findings(works("sglang", "0.5.23")), "sglang")
    assert finding.status == "warn"
    assert "0.5.15.post1" in finding.message
    assert named(findings(works("flash-attn", "2.8.3+cu129")), "flash-attn").status == "pass"


def test_absent_broken_crashed(findings: Findings) -> None:
    absent = named(findings(Probe("sglang", "absent"), Probe("ray", "absent")), "packages")
    assert absent.status == "fail"
    assert absent.message == "not installed: ray, sglang"
    assert named(findings(Probe("apex", "absent")), "apex").status == "warn"
    assert named(findings(broken("torch", "OSError: libc10")), "torch").status == "fail"
    crashed = Probe("transformer-engine", "crashed", {}, "killed by signal 11")
    assert "signal 11" in named(findings(crashed), "transformer-engine").message


def test_what_needs_a_driver_is_not_judged_without_a_gpu(findings: Findings) -> None:
    te = broken("transformer-engine", "OSError: libcuda.so.1")
    assert named(findings(te), "transformer-engine").status == "fail"
    login = named(findings(te, works("torch", "2.9.1", cuda=0)), "transformer-engine")
    assert login.status == "warn"
    assert "compute node" in login.remedy


def test_old_python(findings: Findings) -> None:
    assert named(findings(works("python", "3.10.12")), "python").status == "fail"
    assert named(findings(works("python", "3.11.0")), "python").status == "pass"


def test_another_projects_slime(package: Package, findings: Findings) -> None:
    site = package("slime", "0.0.0", {"slime/__init__.py": ""}, summary="statistics toy")
    finding = named(findings(probe("slime", site)), "slime")
    assert finding.status == "fail"
    assert "another project" in finding.message
    assert "statistics toy" in finding.message
    assert "pip uninstall slime" in finding.remedy


def test_another_projects_apex(package: Package, findings: Findings) -> None:
    site = package("apex", "0.9.10.dev0", {"apex/__init__.py": ""}, summary="a toolkit for Pyramid")
    finding = named(findings(probe("apex", site)), "apex")
    assert finding.status == "fail"
    assert "not NVIDIA's (a toolkit for Pyramid)" in finding.message


def test_nvidias_apex(package: Package, findings: Findings) -> None:
    files = {"apex/optimizers.py": "class FusedAdam: ...", "amp_C.py": ""}
    found = probe("apex", package("apex", "0.1", files))
    assert named(findings(found), "apex").status == "pass"


@pytest.mark.parametrize(("version", "sample"), [("v0.3.1", ""), ("v0.2.4", FAN_OUT)])
def test_a_slime_of_another_release(
    package: Package, findings: Findings, version: str, sample: str
) -> None:
    code = sample or "class Sample: ...\n"
    site = package("slime", "0.3.1", {"slime/__init__.py": "", "slime/utils/types.py": code})
    found = probe("slime", site)
    finding = named(findings(found, slime={"version": version}), "slime")
    assert finding.status == "fail"
    assert version in finding.message
    other = "v0.2.4" if version == "v0.3.1" else "v0.3.1"
    assert named(findings(found, slime={"version": other}), "slime").status == "pass"


def test_the_wheel_of_megatron_core_in_the_image(findings: Findings, tmp_path: Path) -> None:
    inside = str(tmp_path / "Megatron-LM" / "megatron" / "core" / "__init__.py")
    wheel = works("megatron", "0.16.1", file="/usr/lib/megatron/core/__init__.py", training=True)
    assert "not from" in named(findings(wheel), "megatron").message
    alone = works("megatron", "0.16.1", file=inside, training=False)
    assert "megatron.training is missing" in named(findings(alone), "megatron").message
    beside = works("megatron", "0.16.1", file=inside, training=True, from_index=True)
    finding = named(findings(beside), "megatron")
    assert finding.status == "fail"
    assert "pip uninstall megatron-core" in finding.remedy
    assert "embedded" in finding.remedy


def test_our_own_environment_is_told_from_the_image(findings: Findings) -> None:
    """Here megatron-core is the wheel that the extra `embedded` brings."""
    found = run_probes(["megatron"], sys.executable, [])["megatron"]
    assert found.ending == "works"
    assert named(findings(found), "megatron").status == "fail"


def test_numpy_two(findings: Findings) -> None:
    assert named(findings(works("numpy", "2.4.6")), "numpy").status == "fail"
    assert named(findings(works("numpy", "1.26.5")), "numpy").status == "warn"


def test_wandb_without_the_function_of_the_random_suffix(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_probes(["wandb"], sys.executable, [])["wandb"]
    assert (found.ending, found.facts["generate_id"]) == ("works", False), "wandb 0.31 lacks it"
    online = {"track": {"wandb": "online"}, "model": {"facts": None}}
    monkeypatch.setattr("launch.preflight.versions.traps.disables_suffix", lambda recipe: False)
    finding = named(findings(found, **online), "wandb suffix")
    assert finding.status == "fail"
    assert "disable-wandb-random-suffix" in finding.remedy
    passed = {**online, "extra": {"slime": {"disable-wandb-random-suffix": True}}}
    assert named(findings(found, **passed), "wandb suffix").status == "pass"
    older = works("wandb", "0.18.0", generate_id=True)
    assert not [one for one in findings(older, **online) if one.name == "wandb suffix"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"track": {"wandb": "offline", "project": "a/b"}}, "fail"),
        ({"track": {"wandb": "offline", "project": "p" * 129}}, "fail"),
        ({"track": {"wandb": "offline"}, "name": "n" * 129}, "fail"),
        ({"track": {"wandb": "offline", "project": "long context"}}, "pass"),
    ],
)
def test_names_that_wandb_refuses(make: MakeContext, changes: dict, status: str) -> None:
    context = make(offline=True, **changes)
    assert named(check_versions(context.recipe, context), "wandb names").status == status


def test_on_another_machine_nothing_is_imported(make: MakeContext) -> None:
    context = make(offline=True, interpreter="/no/python")
    assert [one.status for one in check_versions(context.recipe, context)] == ["skip"]


def test_every_package_is_probed_once_on_the_machine_of_the_job(
    make: MakeContext, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fake(packages: list[str], python: str, path: list[str]) -> dict[str, Probe]:
        asked.extend(packages)
        assert (python, path) == ("/opt/python", [str(host / "slime"), str(host / "Megatron-LM")])
        return {name: works(name, "1.0", file=path[1] + "/x.py") for name in packages}

    monkeypatch.setattr(versions, "run_probes", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    context = make(interpreter="/opt/python", track={"wandb": "offline"})
    found = check_versions(context.recipe, context)
    assert sorted(asked) == sorted(PROBES)
    assert "ray start --head" in named(found, "ray before wandb").message


def test_the_commit_of_megatron(make: MakeContext, host: Path) -> None:
    context, root = make(), host / "Megatron-LM"
    area = Area("versions")
    versions._megatron_commit(context.recipe, area)
    assert area.findings[-1].status == "skip"
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", str(root), *command], check=True, env=quiet)
    versions._megatron_commit(context.recipe, area)
    assert area.findings[-1].status == "warn"
    assert MEGATRON["v0.3.1"] in area.findings[-1].message
