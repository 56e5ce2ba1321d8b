"""A Slurm cluster whose nodes share a file system with the machine that submits jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.launch.job import RECIPE, Job
from bertwright.launch.options import Environment, Lines, Words, exports
from bertwright.launch.slurm import client
from bertwright.launch.slurm.script import Step, script
from bertwright.launch.target import Description, Submitted


def _form(pattern: str, forms: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"write it like {forms}")
        return text

    return AfterValidator(check)


Time = Annotated[
    str, _form(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}", '"90" (minutes), "12:00:00" or "2-12:00:00" (days)')
]
Memory = Annotated[str, _form(r"\d+[KMGT]?", '"64G", "500M"')]


class Prepare(Section):
    """Resources of each job that builds the corpus, the vocabulary and the examples."""

    tasks: int = Field(4, ge=1, le=10_000)
    """Elements of the job arrays that share the corpus and the examples; 1: one job prepares everything."""
    cpus: int = Field(4, ge=1)
    """CPUs of each element."""
    memory: Memory = "4G"
    """Memory of each element; units K, M, G, T."""
    time: Time = "12:00:00"
    """Time limit of each element, such as "12:00:00"."""
    partition: str = ""
    """Partition of these jobs; "": that of training."""


class Finish(Section):
    """Resources of the job that scores, exports and reports. It runs on the partition of training, with one GPU if
    training had any."""

    cpus: int = Field(4, ge=1)
    """CPUs of the job."""
    memory: Memory = "16G"
    """Memory of the job; units K, M, G, T. It holds the model, a copy to compare the export with, and libraries: 16G is
    enough for a BERT-large."""
    time: Time = "12:00:00"
    """Time limit of the job, such as "12:00:00"."""


def seconds_of(time: str) -> int:
    """Return the length of a time limit in Slurm's notation; 0: no limit."""
    days, dash, rest = time.rpartition("-")
    amounts = [int(amount) for amount in rest.split(":")]
    # After days the first amount is hours; a single one is minutes, and the first of two is minutes too.
    hours = amounts if dash or len(amounts) == 3 else [0, *amounts]
    return sum(amount * unit for amount, unit in zip([int(days or 0), *hours], (86400, 3600, 60, 1), strict=False))


def single_process_options(given: Prepare | Finish, partition: str) -> list[str]:
    """Return the options of sbatch for one process; `partition` "": the cluster's default."""
    where = [f"--partition={partition}"] if partition else []
    return [f"--time={given.time}", f"--cpus-per-task={given.cpus}", f"--mem={given.memory}", *where]


_CONTAINER = re.compile(r"--(no-)?container\b")
"""Options of srun that concern the container: those of pyxis, and Slurm's own."""


class SlurmPlace(Section):
    """A Slurm cluster: a chain of jobs, from the corpus to the report."""

    kind: Literal["slurm"] = "slurm"
    """Names this target."""
    nodes: int = Field(1, ge=1)
    """Number of nodes that train together."""
    gpus: int = Field(0, ge=0)
    """GPUs of each node; 0: train on the CPU."""
    ranks: int | None = Field(None, ge=1)
    """Ranks on each node; left out: one for each GPU, or one without GPUs."""
    cpus: int | None = Field(None, ge=1)
    """CPUs of each training rank; left out: the cluster's default."""
    memory: Memory | None = None
    """Memory of each training node; left out: the cluster's default."""
    time: Time = "24:00:00"
    """Time limit of training. A job that reaches it saves a checkpoint, is requeued and resumes."""
    warning: int = Field(120, ge=10)
    """Seconds before the time limit at which jobs receive the signal to save and requeue."""
    restarts: int = Field(3, ge=0)
    """Maximum number of restarts of a job, counted for any reason (times). It limits restarts after a lost rank, and
    those of jobs that cannot resume, such as the vocabulary, at their time limit."""
    partition: str = ""
    """The partition; "": the cluster's default."""
    account: str = ""
    """The account that is charged; "": the user's default."""
    qos: str = ""
    """The quality of service; "": not specified."""
    options: Lines = ()
    """Further options of sbatch for training, such as "--constraint=v100"."""
    srun: Words = ()
    """Further options of the srun that starts the ranks, such as pyxis's "--container-image=..."."""
    folder: str = ""
    """Working folder of the jobs, as the nodes see it; "": the folder that they are submitted from."""
    setup: tuple[str, ...] = ()
    """Lines of shell to run before everything else, such as "module load cuda" or ". .venv/bin/activate"."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the jobs, in addition to those of the submitting shell."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on this cluster; those on the command line are applied after them."""
    prepare: Prepare = Prepare()
    """Resources of the jobs before training."""
    finish: Finish = Finish()
    """Resources of the job after training."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` for a time limit that leaves no time to work, and if the recipe
        cannot train with this number of ranks."""
        self._check_times()
        job.check_ranks({"nodes": self.nodes, "gpus" if self.gpus and not self.ranks else "ranks": self._ranks()})
        steps = self._steps(job)
        before = [*self.setup, *exports(self.environment)]
        scripts = {step.file: script(step, before, self.restarts) for step in steps}
        return Description({RECIPE: job.recipe, **scripts}, client.submit_commands(steps, str(job.folder)))

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`."""
        return client.submit(self._steps(job), str(folder), log)

    def status(self, submitted: Submitted) -> list[dict[str, str]]:
        """As `Scheduler.status`."""
        return client.status(submitted.jobs)

    def alive(self, submitted: Submitted) -> list[str]:
        """As `Scheduler.alive`."""
        return client.alive(submitted.jobs)

    def logs(self, submitted: Submitted) -> dict[str, str]:
        """As `Scheduler.logs`."""
        return client.logs(submitted)

    def stop(self, submitted: Submitted) -> None:
        """As `Scheduler.stop`."""
        client.stop(submitted.jobs)

    def _check_times(self) -> None:
        for key, time in (("time", self.time), ("prepare.time", self.prepare.time), ("finish.time", self.finish.time)):
            if 0 < seconds_of(time) <= self.warning:
                raise RecipeError(
                    f'{key} = "{time}" is {seconds_of(time)} seconds, but jobs receive the stop signal {self.warning} '
                    "seconds (warning) before their limit, so this one would start again and again without working. "
                    'Slurm reads "2" and "2:00" as minutes, "2:00:00" as hours, "2-0" and "2-00:00:00" as days. '
                    f"Raise {key}, or lower warning."
                )

    def _ranks(self) -> int:
        """Return the number of ranks on each node."""
        return self.ranks or self.gpus or 1

    def _steps(self, job: Job) -> list[Step]:
        """Return the jobs, in the order in which each waits for the previous one."""
        if self.prepare.tasks == 1:
            preparing = [self._prepare(job, "prepare", "run", "--until", "examples")]
        else:
            corpus = [self._share(job, "corpus")] if job.loaded.corpus else []
            preparing = [*corpus, self._prepare(job, "vocab", "vocab"), self._share(job, "examples")]
        return [*preparing, self._train(job), self._finish(job)]

    def _prepare(self, job: Job, name: str, *command: str) -> Step:
        """Return a single-process job before training."""
        options = self._options(job, name, *self._prepare_options())
        # The vocabulary job starts over; a `run` job resumes, apart from its vocabulary.
        return Step(name, job.line(*command), options, self._srun(self.prepare.cpus), goes_on=command[0] == "run")

    def _share(self, job: Job, stage: str) -> Step:
        """Return a job array whose elements share a stage."""
        array = f"--array=0-{self.prepare.tasks - 1}"
        options = self._options(job, stage, *self._prepare_options(), array, log="%A_%a")
        return Step(stage, job.line(stage), options, self._srun(self.prepare.cpus), shared=True, goes_on=True)

    def _train(self, job: Job) -> Step:
        ranks = self._ranks()
        options = [f"--time={self.time}", f"--nodes={self.nodes}", f"--ntasks-per-node={ranks}"]
        sizes = {
            "partition": self.partition,
            "cpus-per-task": self.cpus,
            "mem": self.memory,
            "gpus-per-node": self.gpus,
        }
        options += [f"--{name}={value}" for name, value in sizes.items() if value]
        srun = (*_processors(self.cpus), *self.srun)
        threads = self.cpus or 0
        every = self._options(job, "train", *options, *self.options)
        return Step("train", job.line("train"), every, srun, self.nodes * ranks, threads, goes_on=True)

    def _finish(self, job: Job) -> Step:
        """Return the job for scores, export and report, on the machines that train."""
        gpu = ["--gpus-per-node=1"] if self.gpus else []
        options = self._options(job, "finish", *single_process_options(self.finish, self.partition), *gpu)
        # It does not resume, so a time limit that is too short must not restart it forever.
        return Step("finish", job.line("run"), options, self._srun(self.finish.cpus))

    def _srun(self, cpus: int) -> tuple[str, ...]:
        """Return the options of srun for one process: its CPUs, and the container that training uses."""
        words, chosen = list(_processors(cpus)), False
        for word in self.srun:
            # The value of an option may be the next string.
            chosen = bool(_CONTAINER.match(word)) if word.startswith("-") else chosen
            words += [word] if chosen else []
        return tuple(words)

    def _prepare_options(self) -> list[str]:
        return single_process_options(self.prepare, self.prepare.partition or self.partition)

    def _options(self, job: Job, name: str, *own: str, log: str = "%j") -> tuple[str, ...]:
        """Return the options of sbatch: the common ones, then the job's own."""
        named = {"account": self.account, "qos": self.qos, "chdir": self.folder}
        return (
            f"--job-name={job.name}.{name}",
            f"--output={job.folder}/%x-{log}.log",
            # A job that is started again would otherwise erase the log of its first start.
            "--open-mode=append",
            # A cluster may turn this off by default, and `scontrol requeue` is then refused.
            "--requeue",
            # Without B:, which would send it to the script: the processes that srun starts have to save.
            f"--signal=TERM@{self.warning}",
            *(f"--{option}={value}" for option, value in named.items() if value),
            *own,
        )


def _processors(number: int | None) -> tuple[str, ...]:
    """Return srun's CPU option: since Slurm 22.05 srun no longer inherits it from sbatch, and would bind to one CPU."""
    return (f"--cpus-per-task={number}",) if number else ()
