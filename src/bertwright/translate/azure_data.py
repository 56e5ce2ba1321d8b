"""Inputs and outputs of a job file of Azure ML, as data of a place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bertwright.core.secrets import secret_in
from bertwright.translate.stated import Statement

_ASSET = r"azureml:[\w.-]+(:[\w.-]+|@latest)|azureml://[^\s?#]+|(https|wasbs|abfss)://\S+"
"""Forms of data that a workspace has."""
_FOLDER = r"azureml://datastores/\w+/paths/[\w./-]*"
"""Form of a folder of a datastore."""


def inputs(name: str, value: Any) -> Iterator[Statement]:
    """Yield the data that a job reads; values of other inputs are in the command already."""
    for label, given in value.items() if isinstance(value, Mapping) else ():
        said = given if isinstance(given, Mapping) else {"path": given} if re.match("azureml:", str(given)) else {}
        # A job of the same pipeline makes it, as the run does.
        if (path := str(said.get("path") or "")) and "parent.jobs." not in path:
            yield from _input(f"{name}.{label}", str(label), path, said)


def _input(name: str, label: str, path: str, said: Mapping[str, Any]) -> Iterator[Statement]:
    kind, mode = said.get("type", "uri_folder"), said.get("mode", "ro_mount")
    if secret_in(path):
        yield Statement(f"{name}.path", why="it contains a password, a token or a query; give a folder of a datastore")
    elif not re.fullmatch(_ASSET, path):
        yield Statement(f"{name}.path {path}", why="it is not in the workspace; upload it, and add [inputs.NAME]")
    elif kind not in ("uri_folder", "uri_file"):
        yield Statement(f"{name}.type {kind}", why="an input of a place is a folder or a file")
    else:
        if mode not in ("ro_mount", "download"):
            yield Statement(f"{name}.mode {mode}", why="data is mounted read-only, or downloaded if mode says so")
            mode = "ro_mount"
        yield Statement(f"{name} {path}", "inputs", {label: {"path": path, "type": kind, "mode": mode}})


def outputs(name: str, value: Any) -> Iterator[Statement]:
    """Yield the folders that a job writes to; the first one holds the run folders."""
    held = ""
    for label, given in value.items() if isinstance(value, Mapping) else ():
        for inner, text in given.items() if isinstance(given, Mapping) else ():
            said = f"{name}.{label}.{inner} {text}"
            if inner == "path" and not held and re.fullmatch(_FOLDER, str(text)):
                held = str(text)
                yield Statement(said, "output", held)
            elif inner == "path":
                yield Statement(said, why="the run folder is in one folder of a datastore, which output names")
            elif (inner, text) not in (("type", "uri_folder"), ("mode", "rw_mount")):
                yield Statement(said, why="the run folder is a folder that is mounted, and no data asset is made of it")
