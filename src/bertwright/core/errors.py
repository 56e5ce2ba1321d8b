"""The exceptions of bertwright, one tree.

    BertwrightError
    ├── RecipeError         a recipe, an override or an argument is wrong        exit code 2
    ├── DataError           an input (dump, text, vocabulary) cannot be used     exit code 3
    │   └── DivergedError   training has diverged: all ranks stop at the same step
    ├── ArtifactError       something a stage made is missing, damaged or stale  exit code 4
    │   └── CheckpointError no checkpoint can be trusted
    ├── MissingExtraError   an optional package is needed                        exit code 5
    ├── RankError           another rank of the training is lost                 exit code 6
    └── Interrupted         training was stopped by a signal after saving        exit code 75 (130 by Ctrl-C)

Every message says what was wrong with which value, what would be right, and what to do.
The command line prints the message alone; a traceback always means a fault of bertwright itself.
"""

from __future__ import annotations

import errno

_NO_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What a disk answers that lets nobody write, or not this user, or no more."""
_OURS = {None, errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ESPIPE, errno.ENOTTY, errno.ECHILD}
"""What no disk answers: a fault of this program, or of a library (None)."""


class BertwrightError(Exception):
    """Anything the user can mend; `exit_code` is what the command line returns."""

    exit_code = 1


class RecipeError(BertwrightError):
    """A recipe, an override or an argument is wrong."""

    exit_code = 2


class DataError(BertwrightError):
    """An input file or its content cannot be used."""

    exit_code = 3


class DivergedError(DataError):
    """Training has diverged; raised by all ranks at the same step."""


class ArtifactError(BertwrightError):
    """An artifact is missing, damaged, or does not belong to what it is used with."""

    exit_code = 4


class CheckpointError(ArtifactError):
    """No checkpoint can be trusted."""


class MissingExtraError(BertwrightError):
    """An optional package is needed; the message carries the line that installs it."""

    exit_code = 5


class RankError(BertwrightError):
    """A rank of a training job is lost, or has not come: the others can only end, and be started again with it."""

    exit_code = 6


class Interrupted(BertwrightError):
    """The run was asked to stop and has saved its state; never exit code 0, so a scheduler requeues it."""

    exit_code = 75


_NO_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "can't allocate memory",
    "failed to map segment",
    "can't start new thread",
)
"""What libraries say of it in errors that are no `MemoryError`: torch, CUDA, the loader of shared objects, threads."""


def of_the_system(error: OSError) -> DataError | None:
    """What the system said of a file or a disk, as one sentence: the path, the reason, what to do; None where it is no
    matter of files and disks.
    """
    if error.errno in _OURS:
        return None
    if error.errno == errno.ENOMEM:  # as of `mmap`: no disk is to be seen to
        return of_memory(error)
    what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if error.errno in _NO_PLACE:
        remedy = "Free space or mend the permissions there, or choose another --out DIR"
    else:
        remedy = "See to the disk or the network file system it lies on, and restore the file if it cannot be read"
    return DataError(f"{what}. {remedy}; then run the same command again: what is finished is kept.")


def of_memory(error: Exception) -> DataError | None:
    """One sentence where the error says that there is no memory left, whoever says it; None where it does not."""
    text = str(error).lower()
    short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if not short and not any(words in text for words in _NO_MEMORY):
        return None
    return DataError(
        "there is no memory left for this process (a limit may be set: ulimit -v, a container, a Slurm job). Run the "
        "same command again with more memory, fewer workers (corpus.workers=1, examples.workers=1), or a smaller "
        "train.phases.0.micro_batch: what is finished is kept."
    )
