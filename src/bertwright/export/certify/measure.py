"""Opens a published model in one runtime and answers all lines, or writes its files: the child of a certificate.

A process for each runtime, because their libraries change the process that they are in, a fault of one must not end the
others, and memory is that of a process.

Names carry shapes: N texts, T tokens of all texts together.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.child_process import PATIENCE, why_failed
from bertwright.core.errors import BertwrightError, DataError
from bertwright.core.files import make_folder, write_json
from bertwright.core.signals import check_stop
from bertwright.core.subprocess_group import PYTHON, subprocess_group
from bertwright.export.runtimes.members import runtime_named
from bertwright.export.runtimes.runtime import Output, Published, Reader

ANSWERS = "answers.json"
WARM = 3
"""Texts answered before the clock runs."""


@dataclass(frozen=True)
class Job:
    """What a child is given, as JSON on its standard input."""

    runtime: str
    folder: str
    """The published folder."""
    written: str
    """The folder of the runtime's own files; "" if it reads the published folder."""
    out: str = ""
    """The folder for the answers; "" to write the runtime's own files instead."""
    texts: Sequence[str] = ()
    """Texts to answer."""
    others: Sequence[str] = ()
    """Texts of which only the ids are wanted."""

    def to_json(self) -> str:
        """One line for the child."""
        return json.dumps(asdict(self))


def main() -> int:
    """Do the job on standard input; progress goes to standard output as one count a line."""
    job = Job(**json.loads(sys.stdin.read()))
    try:
        if job.out:
            _answer(job)
        else:
            runtime_named(job.runtime).write(Published(Path(job.folder)), make_folder(Path(job.written)))
    except BertwrightError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _answer(job: Job) -> None:
    runtime, before = runtime_named(job.runtime), _begin_measuring()
    folder = Path(job.folder)
    with runtime.open(Published(folder), Path(job.written) if job.written else folder, threads=1) as reader:
        ids = [reader.ids(text) for text in [*job.texts, *job.others]]
        seconds = _run(reader, job.texts, Path(job.out), Published(folder).unit_vectors)
        memory = _memory("VmHWM") - before
    # A runtime that is a program of its own has ended only now, and only then its memory is known.
    memory = max(memory, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    facts = {"ids": ids, "milliseconds": 1000 * median(seconds), "memory_bytes": memory, "version": runtime.version()}
    write_json(Path(job.out) / ANSWERS, facts)


def _run(reader: Reader, texts: Sequence[str], out: Path, unit: bool) -> list[float]:
    """Write each output of all texts to a file of its own, and return the seconds of each text; `unit`: vectors are
    divided by their length, which only some runtimes do themselves."""
    for text in texts[:WARM]:
        reader.run(text)
    seconds, answers = list[float](), list[dict[Output, NDArray[np.float32]]]()
    for number, text in enumerate(texts):
        begin = time.perf_counter()
        found = reader.run(text)
        seconds.append(time.perf_counter() - begin)
        # A copy: a view of one row would keep the logits of all tokens.
        answers.append({name: np.array(value, np.float32) for name, value in found.items()})
        if unit and "vector" in found:
            answers[-1]["vector"] /= max(float(np.linalg.norm(answers[-1]["vector"])), 1e-12)
        if number % 50 == 49:
            sys.stdout.write(f"{number + 1}\n")
            sys.stdout.flush()
    for name in answers[0]:
        values = [answer[name] for answer in answers]
        if not all(np.isfinite(value).all() for value in values):
            raise DataError(f"{name} has numbers that are not finite")
        np.savez(out / f"{name}.npz", *values)
    return seconds


def run_job(job: Job, name: str, show: Callable[[int], None] = lambda done: None) -> None:
    """Do the job in a child; `show` is given how many texts are answered, messages call it `name`. `DataError` with the
    reason if it fails."""
    command = [*PYTHON, "-m", __name__]
    # A file instead of a pipe, which nobody reads before the end: a full one would stop the child.
    with (
        TemporaryFile() as errors,
        subprocess_group(
            command, PATIENCE, name=name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError):
            process.stdin.write(job.to_json().encode())
            process.stdin.close()
        for line in process.stdout:
            check_stop()
            if line.strip().isdigit():  # a library of the runtime may print, too
                show(int(line))
        code = process.wait()
        errors.seek(0)
        if code:
            raise DataError(why_failed(b"", errors.read(), code))


def load_answers(out: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What a child wrote into `out`: its facts, and the outputs of each text by name."""
    facts = json.loads((out / ANSWERS).read_text(encoding="utf-8"))
    outputs = {}
    for file in sorted(out.glob("*.npz")):
        with np.load(file, allow_pickle=False) as stored:
            outputs[file.stem] = [stored[f"arr_{number}"] for number in range(len(stored.files))]
    return facts, outputs


def _begin_measuring() -> int:
    """The bytes of memory that this process has now; forgets the most that it had, while it imported packages."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    """The bytes of memory of this process, now (VmRSS) or at most (VmHWM); the most where there is no /proc."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
