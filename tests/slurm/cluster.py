"""A Slurm of its own: a controller and two nodes, all on this machine, in a folder, started by root without systemd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import PATIENCE
from tests.slurm import accounts

NODES = ("n1", "n2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
GRACE = 180
"""Seconds between a pre-emption and its kill: as long as a busy machine may take to save."""
_CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
# Two steps and more fit on two cores: nodes have as many as this file says.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=2,batch_sched_delay=1,default_queue_depth=50
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=180
OverTimeLimit=0
SlurmdTimeout=300
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PropagateResourceLimits=NONE
{accounts}{nodes}
PartitionName=low Nodes=n1,n2 Default=YES State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace}
PartitionName=urgent Nodes=n1,n2 State=UP PriorityTier=10 PreemptMode=OFF
"""


@dataclass
class Cluster:
    """A running cluster; its commands find it by `environment`."""

    folder: Path
    environment: dict[str, str]
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def call(self, *command: str, timeout: float = PATIENCE) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def serve(self, name: str, *command: str) -> None:
        """Start a server, whose output goes to a file of the folder."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.servers[name] = subprocess.Popen(
                command, env=self.environment, stdout=out, stderr=out, start_new_session=True
            )

    def node(self, name: str) -> None:
        """Start a node."""
        self.serve(name, "slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf"))

    def keep_accounts(self, port: int, database: int) -> None:
        """Start the accounts, at these ports, and tell them of the cluster."""
        self.serve("database", *accounts.database(self.folder, database))
        _await(lambda: _answers(database))
        self.serve("slurmdbd", *accounts.slurmdbd(self.folder, port, database))
        _await(lambda: _answers(port))
        self.call("sacctmgr", "--immediate", "add", "cluster", "tests")

    def job(self, number: str) -> dict[str, str]:
        """What the controller says of a job, or of the element of an array."""
        said = self.call("scontrol", "--oneliner", "show", "job", number).splitlines()[0]
        return dict(word.split("=", 1) for word in said.split() if "=" in word)

    def wait(self, number: str, *states: str, seconds: float = PATIENCE) -> dict[str, str]:
        """The job when it is in one of the states; a requeued one is begun soon."""
        until = time.monotonic() + seconds
        while True:
            job = self.job(number)
            if job["JobState"] in states:
                return job
            if time.monotonic() > until:
                raise AssertionError(
                    f"job {number} is {job['JobState']} ({job['Reason']}), not {states}\n{self.said()}"
                )
            # Slurm waits two minutes, in which the nodes end what is left of the start before: it has ended sooner.
            old = (*processes_of(number), *step_servers_of(number))
            if job["JobState"] == "PENDING" and job["Reason"] == "BeginTime" and not old:
                subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], env=self.environment)
            time.sleep(0.5)

    def is_calling(self) -> bool:
        """Whether the controller still sends something to a node, or will again: to end a job, for example."""
        found = [line.split() for line in self.call("sdiag").splitlines() if line.startswith("Agent ")]
        assert found
        return any(words[-1] != "0" for words in found)

    def said(self) -> str:
        """The ends of the logs of the controller and of the nodes."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {log.name}\n" + "\n".join(log.read_text().splitlines()[-12:]) for log in logs)

    def end(self) -> None:
        """End all that was started."""
        if "slurmctld" in self.servers:
            subprocess.run(["scancel", "--user=root"], env=self.environment, timeout=PATIENCE, check=False)
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until and self.call("squeue", "--noheader"):
                time.sleep(0.5)
        for server in reversed(self.servers.values()):
            server.terminate()
        for server in self.servers.values():
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextmanager
def cluster(folder: Path, accounting: bool = False) -> Iterator[Cluster]:
    """A cluster in an empty folder, until the block ends; one with `accounting` forgets soon what has ended."""
    ports = _free_ports(3 + len(NODES))
    dbd, database = ports[-2:]
    lines = [
        f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=64000"
        for name, port in zip(NODES, ports[1:-2], strict=True)
    ]
    for name in ("state", *NODES):
        (folder / name).mkdir()
    values = {"host": socket.gethostname(), "port": ports[0], "folder": folder, "nodes": "\n".join(lines)}
    added = accounts.CLUSTER_CONF.format(port=dbd, folder=folder) if accounting else ""
    (folder / "slurm.conf").write_text(_CONF.format(**values, grace=GRACE, accounts=added))
    made = Cluster(folder, {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")})
    for name in [name for name in made.environment if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF"]:
        del made.environment[name]
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    munge = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munge.pid", "log-file": "munge.log"}
    options = [f"--{option}={folder / name}" for option, name in {**munge, "seed-file": "munge.seed"}.items()]
    try:
        # `--force`: the folders above are those of the tests, and not of munge's own user.
        made.serve("munged", "munged", "--foreground", "--force", *options)
        _await(lambda: (folder / "munge.socket").exists())
        if accounting:
            made.keep_accounts(dbd, database)
        made.serve("slurmctld", "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for name in NODES:
            made.node(name)
        _await(
            lambda: (
                made.call("sinfo", "--noheader", "--Node", "--partition=low", "--format=%t").split() == ["idle", "idle"]
            )
        )
        yield made
    finally:
        made.end()


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def processes_of(job: str) -> dict[int, list[bytes]]:
    """The processes of a job on all nodes, each with its environment."""
    found = dict[int, list[bytes]]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if f"SLURM_JOB_ID={job}".encode() in words:
            found[int(folder.name)] = words
    return found


def step_servers_of(job: str) -> list[int]:
    """The servers of a job's steps on all nodes (slurmstepd), which end what is left of a step, and then themselves."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if (folder / "cmdline").read_bytes().startswith(f"slurmstepd: [{job}.".encode()):
                found.append(int(folder.name))
    return found


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _answers(port: int) -> bool:
    with socket.socket() as each:
        return each.connect_ex(("127.0.0.1", port)) == 0


def _await(there: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if there():
                return
        except AssertionError:
            if time.monotonic() > until:
                raise
        assert time.monotonic() < until, "the cluster does not come up"
        time.sleep(0.2)
