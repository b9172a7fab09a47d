"""The rendered script: golden files, shellcheck, and what its steps really call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launch.slurm.render import ScriptError, render_job
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from tests.launch.recipes import dense_recipe

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
RUN = Path("/shared/runs/longtracerl-qwen3-4b")
SITE = (
    'model.path="/shared/models/Qwen3-4B-Thinking-2507"',
    "cluster.partition=gpu",
    "cluster.account=lab",
    'cluster.time="24:00:00"',
    "cluster.interface=bond0",
    'cluster.environment={ NCCL_IB_TC = "160" }',
    'cluster.secrets_file="/home/me/.longrl-keys"',
    'cluster.setup=["module load cuda"]',
)
CONTAINERS = {
    "bare": (),
    "pyxis": ("cluster.container=pyxis", 'cluster.image="/shared/images/longrl.sqsh"'),
    "apptainer": ("cluster.container=apptainer", 'cluster.image="/shared/images/longrl.sif"'),
}
JUDGE = """
[[cluster.services]]
name = "judge"
command = 'exec "$PYTHON" -m sglang.launch_server --host "$HOST" --port 30000'
port = 30000
own_node = true

[[cluster.services]]
name = "reward-model"
command = 'exec "$PYTHON" -m launch.cli.main serve-judge rm.toml --host "$HOST" --port 30001'
port = 30001
"""


def four_b(*changes: str) -> Recipe:
    path = ROOT / "configs" / "longtracerl" / "qwen3-4b.toml"
    return load_recipe(path, (*SITE, *changes)).recipe


def with_judge(folder: Path, *changes: str) -> Recipe:
    path = folder / "judge.toml"
    base = ROOT / "configs" / "longtracerl" / "qwen3-4b.toml"
    path.write_text(f'base = "{base}"\nname = "judged"\n{JUDGE}')
    return load_recipe(path, (*SITE, *changes)).recipe


def shellcheck(script: str) -> str:
    program = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([program, "-"], input=script, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_script_of_the_4b_recipe(container: str) -> None:
    script = render_job(four_b(*CONTAINERS[container]), RUN)
    golden = GOLDEN / f"longtracerl-qwen3-4b-{container}.sh"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(script)
    assert script == golden.read_text(), "UPDATE_GOLDEN=1 writes the new text, to be read as a diff"
    assert shellcheck(script) == ""


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("cluster.requeue=false",),
        ("cluster.nodes=1", "parallel.cp=1"),
        ("cluster.exclusive=false",),
        CONTAINERS["pyxis"],
        CONTAINERS["apptainer"],
    ],
    ids=["plain", "no requeue", "one node", "shared", "pyxis", "apptainer"],
)
@pytest.mark.parametrize("smoke", [False, True])
def test_every_form_of_the_script_passes_shellcheck(
    changes: tuple[str, ...], smoke: bool, tmp_path: Path
) -> None:
    for recipe in (four_b(*changes), with_judge(tmp_path, *changes)):
        assert shellcheck(render_job(recipe, RUN, smoke)) == ""


@pytest.mark.parametrize("changes", [(), ("cluster.requeue=false",), CONTAINERS["pyxis"]])
def test_the_embedded_script_passes_shellcheck(changes: tuple[str, ...]) -> None:
    lab = load_recipe(ROOT / "configs" / "embedded" / "lab.toml", changes).recipe
    script = render_job(lab, Path("/shared/runs/lab"))
    assert shellcheck(script) == ""
    assert "--gres" not in script
    assert "--exclusive" not in script


def test_nothing_is_killed_by_name_and_no_variable_is_exported_twice(tmp_path: Path) -> None:
    script = render_job(with_judge(tmp_path), RUN)
    assert not re.search(r"\b(pkill|killall|ray stop)\b", script)
    exported = re.findall(r"^  export ([A-Za-z_]+)=", script, re.MULTILINE)
    doubled = {name for name in exported if exported.count(name) > 1}
    # A part of the script of its own each.
    assert doubled <= {"CUDA_VISIBLE_DEVICES"}


def test_site_lines_run_without_nounset() -> None:
    script = render_job(four_b(), RUN)
    assert re.search(r"set \+u\n  module load cuda\n  set -u\n", script)


def test_nodes_of_services_are_asked_for_on_top(tmp_path: Path) -> None:
    script = render_job(with_judge(tmp_path), RUN)
    assert "#SBATCH --nodes=5\n" in script
    assert 'nodes=("${all[@]:0:4}")' in script
    assert 'step --nodes=1 --ntasks=1 --nodelist="${all[4]}" service_judge &' in script
    assert 'step --nodes=1 --ntasks=1 --nodelist="$first" service_reward_model &' in script
    assert "export LONGRL_SERVICE_REWARD_MODEL=$ADDRESS" in script


@pytest.mark.parametrize("run", ["/runs/a b", "/runs/it's", "/runs/50%", "/runs/$HOME", "/r\n/x"])
def test_a_run_folder_that_slurm_cannot_take_is_refused(run: str) -> None:
    with pytest.raises(ScriptError, match="--runs"):
        render_job(four_b(), Path(run))


@pytest.mark.parametrize("line", ["qos=high", "--qos=high\necho", "", " --qos=high"])
def test_a_line_that_is_no_option_is_refused(line: str, tmp_path: Path) -> None:
    recipe = dense_recipe(tmp_path)
    cluster = recipe.cluster.model_copy(update={"sbatch": [line]})
    with pytest.raises(ScriptError, match="one option each"):
        render_job(recipe.model_copy(update={"cluster": cluster}), RUN)


STAND_IN = """#!/bin/bash
printf '%s\\n' "{name}" "$@" >> "{record}.$$"
while [ $# -gt 0 ] && [ "$1" != bash ] && [ "$1" != apptainer ]; do shift; done
case "${{*: -1}}" in worker | head) exec sleep 60 ;; sweep) exit 0 ;; esac
{then}
"""


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_steps_call_srun_and_the_container_with_these_words(
    container: str, tmp_path: Path
) -> None:
    run, bin_folder = tmp_path / "runs" / "standin", tmp_path / "bin"
    (run / "logs").mkdir(parents=True)
    bin_folder.mkdir()
    record = tmp_path / "argv"
    for name, then in (("srun", '"$@"'), ("apptainer", "exit 42"), ("python3", "exit 42")):
        text = STAND_IN.format(name=name, record=record, then=then)
        if name == "python3":
            text = '#!/bin/bash\ncase "$*" in *driver*) exit 42 ;; *) echo 8 ;; esac\n'
        (bin_folder / name).write_text(text)
    (bin_folder / "scontrol").write_text("#!/bin/bash\nprintf 'n1\\nn2\\nn3\\nn4\\n'\n")
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    recipe = four_b(*CONTAINERS[container], "cluster.setup=[]", "cluster.secrets_file=/dev/null")
    (run / "job.sh").write_text(render_job(recipe, run))
    environment = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "n[1-4]",
        "SLURM_NODEID": "0",
        "SLURMD_NODENAME": "n1",
    }
    words = ["bash", "job.sh"]
    done = subprocess.run(words, cwd=run, env=environment, capture_output=True, text=True)
    # A file a call: those of steps that start at once would mix in one.
    written = [path.read_text() for path in tmp_path.glob("argv.*")]
    calls = [call for text in written for call in text.split("srun\n")[1:]]
    driver = next(call.split("\n") for call in calls if call.rstrip().endswith("driver"))
    assert driver[:3] == ["--overlap", "--cpu-bind=none", "--kill-on-bad-exit=1"]
    assert "--nodelist=n1" in driver
    if container == "pyxis":
        mounts = next(word for word in driver if word.startswith("--container-mounts="))
        for path in (run.parent, "/tmp", "/shared/models/Qwen3-4B-Thinking-2507", "/dev/null"):
            assert f"{path}:{path}" in mounts
        assert "--container-image=/shared/images/longrl.sqsh" in driver
    elif container == "apptainer":
        inner = driver[driver.index("apptainer") :]
        assert inner[:3] == ["apptainer", "exec", "--nv"]
        assert "/shared/images/longrl.sif" in inner
    else:
        assert not any("container" in word for word in driver)
    sweep = next(call for call in calls if call.rstrip().endswith("sweep"))
    assert "container" not in sweep
    assert "apptainer" not in sweep
    assert done.returncode == 42, done.stdout + done.stderr
    assert not (run / ".token-17").exists()
