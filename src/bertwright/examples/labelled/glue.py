"""Finds a task of GLUE by its name, `glue/sst2`, where programs keep it: a folder of GLUE's files, or Hugging Face's
caches. Nothing is downloaded: a run reads the files that are here, on a machine without a network too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bertwright.examples.labelled.tasks import GLUE

_FOLDERS = {"sst2": "SST-2", "stsb": "STS-B", "mnli": "MNLI", "cola": "CoLA"}
"""Folders that GLUE's own archive names otherwise than by the task in capitals."""


def glue_folder(path: Path) -> Path:
    """The folder of the task that `path` names, if there is nothing at the path itself; else the path as it is."""
    if path.exists() or not (task := _task(path)):
        return path
    return next((folder for folder in _places(task) if _holds_train(folder)), path)


def missing_glue(path: Path) -> str:
    """Why there is no data at a path that names a task of GLUE, and how to get it; "" for any other path."""
    if not (task := _task(path)):
        return ""
    return (
        f"{path} names a task of GLUE, which is neither a folder here, nor in GLUE_DIR, nor in the caches of Hugging "
        "Face (HF_HOME), and nothing is downloaded; where there is a network, run: hf download nyu-mll/glue "
        f"--repo-type dataset --include '{task}/*'"
    )


def _task(path: Path) -> str:
    """The task in `glue/NAME`, as Hugging Face spells it; "" if the path is another one."""
    folder, *name = path.parts if len(path.parts) == 2 else ("", "")
    task = "".join(name).lower().replace("sst-2", "sst2").replace("sts-b", "stsb").removesuffix("-mm")
    return task if folder.lower() == "glue" and task in GLUE else ""


def _places(task: str) -> Iterator[Path]:
    """The folders where the task may be, the most deliberate first; of several copies in a cache the newest."""
    if own := os.environ.get("GLUE_DIR"):
        yield from (Path(own) / name for name in (_FOLDERS.get(task, task.upper()), task))
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    datasets = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    for cache, pattern in (
        *((hub, f"datasets--{name}/snapshots/*/{task}") for name in ("nyu-mll--glue", "glue")),
        *((datasets, f"{name}/{task}/*/*") for name in ("nyu-mll___glue", "glue")),
    ):
        yield from sorted(cache.glob(pattern), key=lambda folder: folder.stat().st_mtime, reverse=True)


def _holds_train(folder: Path) -> bool:
    """Whether a copy is whole enough to train on: an interrupted download leaves a folder without these files."""
    return folder.is_dir() and any("train" in file.name for file in folder.iterdir() if file.is_file())
