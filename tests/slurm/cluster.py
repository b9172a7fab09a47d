"""A real SLURM cluster of several nodes on this one machine, for tests.

One design choice: slurmd plays any number of nodes on one host (`-N NAME`, a port each), so the
scripts under test meet the real sbatch, srun, scancel and signals; only the GPUs are empty files.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun")
START_S = 60.0


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """A running cluster: its node names and the environment its commands need."""

    nodes: tuple[str, ...]
    environment: dict[str, str]
    folder: Path

    def run(self, *command: str, check: bool = True) -> str:
        """Output of a SLURM command such as `squeue`."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=check, timeout=60
        )
        return done.stdout + done.stderr


def missing_programs() -> list[str]:
    """Programs of SLURM that this machine lacks."""
    return [name for name in PROGRAMS if not shutil.which(name, path=_search_path())]


@contextmanager
def slurm_cluster(folder: Path, nodes: int = 4, gpus: int = 8) -> Iterator[SlurmCluster]:
    """Start munge, slurmctld and `nodes` slurmd; everything is stopped at the end.

    Raises RuntimeError where the nodes do not become idle within START_S seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    configuration = _write_configuration(folder, names, gpus)
    environment = {**os.environ, "SLURM_CONF": str(configuration), "PATH": _search_path()}
    for inherited in [name for name in environment if name.startswith("SLURM_JOB")]:
        del environment[inherited]
    cluster = SlurmCluster(names, environment, folder)
    _start_munge(environment)
    daemons = [_daemon(cluster, "slurmctld", "-D", "-i", "-c")]
    try:
        daemons += [_daemon(cluster, "slurmd", "-D", "-N", name) for name in names]
        _wait_for_nodes(cluster)
        yield cluster
    finally:
        cluster.run("scancel", "--user", "root", check=False)
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _search_path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _write_configuration(folder: Path, names: tuple[str, ...], gpus: int) -> Path:
    host = socket.gethostname()
    first_port = _free_ports(len(names) + 1)
    ports = ",".join(str(first_port + 1 + offset) for offset in range(len(names)))
    for name in ("state", "spool", "gpus"):
        (folder / name).mkdir(exist_ok=True)
    for number in range(gpus):
        (folder / "gpus" / f"gpu{number}").touch()
    listed = ",".join(names)
    # Ports of a run follow from its job id: two clusters on one machine count from different ones.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    node = f"CPUs=8 RealMemory=4000 Gres=gpu:{gpus}"
    (folder / "gres.conf").write_text(
        f"NodeName={listed} Name=gpu File={folder}/gpus/gpu[0-{gpus - 1}]\n"
    )
    path = folder / "slurm.conf"
    path.write_text(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={first_port}
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=5
MinJobAge=600
JobRequeue=1
FirstJobId={1 + 160 * (worker % 4)}
NodeName={listed} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports}] {node}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=NO
""")
    return path


def _free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that nobody listens on."""
    for first in range(17000 + os.getpid() % 1000, 30000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                one = socket.socket()
                sockets.append(one)
                one.bind(("0.0.0.0", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError(f"no {count} free neighbouring ports between 17000 and 30000")


def _start_munge(environment: dict[str, str]) -> None:
    answers = subprocess.run(
        "munge -n | unmunge", shell=True, env=environment, capture_output=True, check=False
    )
    if answers.returncode == 0:
        return
    Path("/run/munge").mkdir(exist_ok=True)
    shutil.chown("/run/munge", "munge", "munge")
    start = ["runuser", "-u", "munge", "--", "/usr/sbin/munged", "--force"]
    subprocess.run(start, env=environment, check=True, capture_output=True)


def _daemon(cluster: SlurmCluster, *command: str) -> subprocess.Popen[bytes]:
    log = (cluster.folder / f"{'-'.join(command[:1] + command[3:])}.out").open("wb")
    with log:
        return subprocess.Popen(command, env=cluster.environment, stdout=log, stderr=log)


def _wait_for_nodes(cluster: SlurmCluster) -> None:
    deadline = time.monotonic() + START_S
    states = ""
    while time.monotonic() < deadline:
        states = cluster.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        idle = {line.split()[0] for line in states.splitlines() if line.endswith(" idle")}
        if idle >= set(cluster.nodes):
            return
        time.sleep(0.5)
    raise RuntimeError(
        f"the nodes are not idle after {START_S:g} s: {states}; see {cluster.folder}"
    )
