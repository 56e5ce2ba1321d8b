"""The exception hierarchy of bertwright.

    BertwrightError
    ├── RecipeError         a recipe, an override or an argument is wrong        exit code 2
    ├── DataError           an input (dump, text, vocabulary) cannot be used     exit code 3
    │   └── DivergedError   training has diverged: all ranks stop at the same step
    ├── ArtifactError       something a stage made is missing, damaged or stale  exit code 4
    │   └── CheckpointError no checkpoint can be trusted
    ├── MissingExtraError   a package is not installed                           exit code 5
    ├── RankError           another rank of the training is lost                 exit code 6
    └── Interrupted         training was stopped by a signal after saving        exit code 75 (130 by Ctrl-C)

Every message says which value is wrong and why, what is valid, and what to do.
The command line prints only the message; a traceback always means a bug in bertwright itself.
"""

from __future__ import annotations

import errno
import re
import sys

from bertwright.core.secrets import hide_secrets

_NO_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a file system that cannot be written to: read-only, no permission, full, or over a size limit."""
_OURS = {None, errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ESPIPE, errno.ENOTTY, errno.ECHILD}
"""Errors that no disk causes: a bug in this program, or in a library (None)."""
_PIP = {"yaml": "pyyaml"}
"""The names of packages whose modules are called otherwise."""


class BertwrightError(Exception):
    """Base class of all errors that the user can fix; the command line exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        """The message without secrets, which a value that it cites may hold."""
        return hide_secrets(super().__str__())


class RecipeError(BertwrightError):
    """A recipe, an override or an argument is wrong."""

    exit_code = 2


class DataError(BertwrightError):
    """An input file or its content cannot be used."""

    exit_code = 3


class DivergedError(DataError):
    """Training has diverged; all ranks raise it at the same step."""


class ArtifactError(BertwrightError):
    """An artifact is missing, damaged, or does not belong to what it is used with."""

    exit_code = 4


class CheckpointError(ArtifactError):
    """No checkpoint can be trusted."""


class MissingExtraError(BertwrightError):
    """A package is missing; the message contains the command that installs it."""

    exit_code = 5


class RankError(BertwrightError):
    """A rank of a training job is lost or never joined: the others must end, and all must be started again."""

    exit_code = 6


class Interrupted(BertwrightError):
    """A signal stopped the run, which saved its state; the exit code is never 0, so that a scheduler requeues it."""

    exit_code = 75


def missing_package_error(error: Exception) -> MissingExtraError | None:
    """Convert the error of a package that is not installed to one sentence; None for any other error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    # A part of a package, of this one or of Python itself is missing because of a bug.
    if name is None or "." in name or name in sys.stdlib_module_names:
        return None
    command = f"pip install {_PIP.get(name, name)}"
    return MissingExtraError(f"the Python package {name} is needed here, but is not installed: {command}.")


_NO_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "can't allocate memory",
    "failed to map segment",
    "can't start new thread",
    "bad_alloc",
)
"""Phrases for it in errors other than `MemoryError`: torch, the shared-object loader, threads."""
_NO_THREAD = "resource temporarily unavailable"
"""The message of C++ if a thread cannot start; about a file, it would mean that another process has locked it."""
_NO_GPU_MEMORY = re.compile(r"\b(cuda|hip)\b[^\n]*out of memory", re.IGNORECASE)
"""The same of a GPU, in torch's words."""


SHORTER = "Give a shorter name: with what is added for temporary files, it may have about 240 bytes."
"""What to do if the file system refuses a name because of its length."""


def system_error(error: OSError) -> DataError | None:
    """Convert a file or disk error to one sentence: the path, the reason, what to do; None for any other error."""
    if error.errno in _OURS:
        return None
    if error.errno == errno.ENOMEM:  # from `mmap`, for example: not a problem of the disk
        return memory_error(error)
    what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if error.errno == errno.ENAMETOOLONG:
        return DataError(f"{what}. {SHORTER}")
    if error.errno in _NO_PLACE:
        remedy = "Free space or correct the permissions there, or choose another --out DIR"
    else:
        remedy = "Check the disk or the network file system that holds it, and restore the file if it cannot be read"
    return DataError(f"{what}. {remedy}; then run the same command again: what is finished is kept.")


def memory_error(error: Exception) -> DataError | None:
    """Convert an out-of-memory error of any library to one sentence; None for any other error."""
    text = str(error).lower()
    if _NO_GPU_MEMORY.search(text):
        return _gpu_memory_error(str(error))
    short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    short |= isinstance(error, RuntimeError) and text == _NO_THREAD
    if not short and not any(words in text for words in _NO_MEMORY):
        return None
    return DataError(
        "this process has run out of memory or of threads (a limit may be set: ulimit -v or -u, a container, a Slurm "
        "job). Run the same command again with more memory, fewer workers (corpus.workers=1, examples.workers=1), or "
        "a smaller train.phases.0.micro_batch: what is finished is kept."
    )


def _gpu_memory_error(text: str) -> DataError:
    """The error for a GPU that is out of memory; `text` is the message of torch."""
    # A paragraph on torch's allocator follows; the first two sentences say what could not be allocated.
    beginning = ". ".join(text.partition("\n")[0].split(". ")[:2]).rstrip(".")
    return DataError(
        f"{beginning}. What is finished is kept. Run the same command again when no other program uses this GPU "
        "(nvidia-smi), or with train.phases.N.micro_batch=auto or a smaller number, or, if that is auto or 1 already, "
        "with train.checkpoint_activations=true, train.precision=bf16 or (on several GPUs) train.engine=zero, or, if "
        "it was evaluating, with a smaller evaluate.batch."
    )
