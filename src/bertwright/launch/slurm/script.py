"""The text of a batch script."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_MEET = """\
# The ranks meet at this, the first node, at a port that no other job has.
export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"""
_AS_RANK = (
    "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID"
    ' WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$SLURM_NTASKS_PER_NODE; exec "$0" "$@"'
)
_GOES_ON = """\
# 75: it was told to stop (time limit, pre-emption) and has saved. 6, 134 and 137: a rank was lost (134: NCCL ended it).
case $code in
75) scontrol requeue "$SLURM_JOB_ID" ;;
6 | 134 | 137) if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then scontrol requeue "$SLURM_JOB_ID"; fi ;;
esac
exit $code"""
_BEGINS_AGAIN = """\
# 75: it was told to stop (time limit, pre-emption) and starts again, but not forever: the limit may be too short.
case $code in
75 | 6 | 137) if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then scontrol requeue "$SLURM_JOB_ID"; fi ;;
esac
exit $code"""


@dataclass(frozen=True)
class Step:
    """A job of the chain."""

    name: str
    line: str
    """The command, quoted for a shell."""
    options: tuple[str, ...]
    """Options of sbatch."""
    srun: tuple[str, ...] = ()
    """Options of srun."""
    ranks: int = 1
    """Number of processes that train together."""
    threads: int = 0
    """Threads of each process; 0: one for each CPU that it finds."""
    shared: bool = False
    """Whether the elements of a job array share the work."""
    goes_on: bool = False
    """Whether it resumes where it stopped, any number of times, instead of starting over."""

    @property
    def file(self) -> str:
        """File name of its script."""
        return f"{self.name}.sbatch"


def script(step: Step, before: Sequence[str], restarts: int) -> str:
    """Return the batch script of a step. `before` are lines of shell; `restarts` is the maximum number of restarts
    after a lost rank, or of a step that starts over."""
    command = step.line
    if step.shared:
        command += ' --rank "$SLURM_ARRAY_TASK_ID" --world "$SLURM_ARRAY_TASK_COUNT"'
    if step.ranks > 1:
        # In the script, these variables of Slurm would be those of the first process for all of them.
        command = f"bash -c {shlex.quote(_AS_RANK)} {command}"
    # Use srun even for one process: Slurm sends its early signal to what srun started, not to the script.
    # A lost rank is noticed by the others, which end in order; with 1, srun would kill them at once.
    # A cluster that starts jobs without the environment of the submitting shell (SBATCH_EXPORT=NONE) would also keep
    # what this script exports from the processes.
    words = ["srun", "--export=ALL", "--kill-on-bad-exit=0"]
    start = shlex.join([*words, *(step.srun if step.ranks > 1 else ("--ntasks=1", *step.srun))])
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {shlex.quote(option)}" for option in step.options),
            # If a line of `setup` fails, the program must not run in another environment.
            "set -e",
            *([_MEET] if step.ranks > 1 else []),
            *([f"export OMP_NUM_THREADS={step.threads}"] if step.threads else []),
            *before,
            "code=0",
            # Not the end of the script, in spite of -e: what comes next depends on the code.
            f"{start} {command} || code=$?",
            (_GOES_ON if step.goes_on else _BEGINS_AGAIN).format(restarts=restarts),
            "",
        ]
    )
