"""What a job file of Azure ML states besides its command, as keys of a place: machines, services, inputs, outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bertwright.core.addresses import is_secret
from bertwright.core.secrets import hide_in_value, hide_in_words, secret_in
from bertwright.translate.launchers import Statement

Reader = Callable[[str, Any], Iterator[Statement]]
"""Returns what a setting of a name and a value states."""
_READ = {"$schema", "type", "command", "jobs"}
"""Keys of a job that only the file's form needs, or that are read elsewhere."""
_WHY = {
    "code": "a job receives only the recipe, and its environment has the program",
    "environment": "it has the packages of the original; here the environment has bertwright and what the recipe "
    "needs, unless image.registered names another that has them",
    "name": "the run folder names the job: --out DIR",
    "display_name": "the run folder names the job: --out DIR",
    "description": "it describes the original",
    "tags": "they describe the original",
    "default_datastore": "output names the folder that holds the run folders",
    "continue_on_step_failure": "a step starts only if the one before it has succeeded",
    "force_rerun": "always on: a run that goes on has the same inputs",
    "job_tier": "machines are of the standard tier, except for spot ones",
    "nodes": "services run on the first machine, or on all",
    "logDir": "TensorBoard shows the folder that the recipe writes its events to",
    "log_dir": "TensorBoard shows the folder that the recipe writes its events to",
}
"""Why no place has a setting, by the last part of its name."""
_SERVICES = {"tensorboard": "tensorboard", "jupyterlab": "jupyter", "vscode": "vscode"}
"""Types of services, in lower case and without underscores, and the names of a place for them."""
_IDENTITIES = {"managed": "managed", "managed_identity": "managed", "user_identity": "user_identity"}


def statements(job: Mapping[str, Any]) -> Iterator[Statement]:
    """Yield what a job states besides its command, in the order of the file."""
    # Read before everything else, because a tier means something only without a cluster.
    clustered = [*_compute("compute", job.get("compute"))]
    for name, value in job.items():
        if name in _READ or value is None:
            continue
        for found in _READERS.get(name, _without_key)(name, value):
            if found.key == "spot" and clustered:
                why = "it is for serverless machines; a cluster has a setting of its own"
                found = Statement(found.setting, why=why)
            yield found


def _compute(name: str, value: Any) -> Iterator[Statement]:
    """Yield the cluster; published files contain "<Enter the name of your compute here>" instead of its name."""
    text = str(value or "").removeprefix("azureml:")
    if text not in ("", "serverless"):
        # A "local" job runs on its user's own machine.
        known = text != "local" and re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]", text)
        yield Statement(f"{name} {text}", "compute", text if known else None)


def _without_key(name: str, value: Any) -> Iterator[Statement]:
    """Yield a setting that no place has; of sections and lists only the name, because they may be long."""
    last = name.rpartition(".")[2]
    if isinstance(value, bool | int | float | str):
        name = f"{name} {hide_in_value(last, ' '.join(hide_in_words(str(value).split())))}"
    yield Statement(name, why=_WHY.get(last, "no key of the place is like it"))


def _nothing(name: str, value: Any) -> Iterator[Statement]:
    """Yield nothing: the setting is read elsewhere."""
    yield from ()


def _as(key: str, form: str) -> Reader:
    """Return the reader of a setting that is a key of the place if it has this form."""

    def read(name: str, value: Any) -> Iterator[Statement]:
        text = str(value)
        if re.fullmatch(form, text):
            yield Statement(f"{name} {text}", key, int(text) if text.isdecimal() else text)
        else:
            yield from _without_key(name, value)

    return read


def _section(**readers: Reader) -> Reader:
    """Return the reader of a section, with the reader of each of its keys that a place has."""

    def read(name: str, value: Any) -> Iterator[Statement]:
        for inner, given in value.items() if isinstance(value, Mapping) else ():
            yield from readers.get(inner, _without_key)(f"{name}.{inner}", given)

    return read


def _tier(name: str, value: Any) -> Iterator[Statement]:
    if str(value).lower() == "spot":
        yield Statement(f"{name} {value}", "spot", True)
    else:
        yield from _without_key(name, value)


def _identity(name: str, value: Any) -> Iterator[Statement]:
    if ours := _IDENTITIES.get(str(value).lower()):
        yield Statement(f"{name} {value}", "identity", ours)
    else:
        yield Statement(f"{name} {value}", why="without the key identity, jobs use the keys that the datastore stores")


def _variables(name: str, value: Any) -> Iterator[Statement]:
    held = {}
    for variable, given in value.items() if isinstance(value, Mapping) else ():
        text, setting = str(given), f"{name}.{variable}"
        if is_secret(str(variable)) or secret_in(text):
            yield Statement(setting, why="a place contains no secrets; set it on the machines")
        elif "${{" in text or not re.fullmatch(r"[A-Za-z_]\w*", str(variable), re.ASCII):
            yield Statement(setting, why="Azure inserts values only into commands; export it in the place's setup")
        else:
            held[str(variable)] = text
    if held:
        yield Statement(name, "environment", held)


def _services(name: str, value: Any) -> Iterator[Statement]:
    held = []
    for label, service in value.items() if isinstance(value, Mapping) else ():
        settings = dict(service) if isinstance(service, Mapping) else {}
        kind = str(settings.pop("type", settings.pop("job_service_type", "")))
        more = settings.pop("properties", None)
        if ours := _SERVICES.get(kind.lower().replace("_", "")):
            held.append(ours)
            settings |= more if isinstance(more, Mapping) else {}
            readers: dict[str, Reader] = {"nodes": _as("service_nodes", "all")}
            readers |= {"logDir": _events, "log_dir": _events} if ours == "tensorboard" else {}
            yield from _section(**readers)(f"{name}.{label}", settings)
        else:
            yield from _without_key(f"{name}.{label}", kind)
    if held:
        yield Statement(name, "services", sorted(set(held)))


def _events(name: str, value: Any) -> Iterator[Statement]:
    yield from (found._replace(shows=str(value)) for found in _without_key(name, value))


_ASSET = r"azureml:[\w.-]+(:[\w.-]+|@latest)|azureml://[^\s?#]+|(https|wasbs|abfss)://\S+"
"""Forms of data that a workspace has."""
_FOLDER = r"azureml://datastores/\w+/paths/[\w./-]*"
"""Form of a folder of a datastore."""


def inputs(name: str, value: Any) -> Iterator[Statement]:
    """Yield the data that a job reads; values of other inputs are in the command already."""
    for label, given in value.items() if isinstance(value, Mapping) else ():
        data = given if isinstance(given, Mapping) else {"path": given} if re.match("azureml:", str(given)) else {}
        # A job of the same pipeline makes it, as the run does.
        if (path := str(data.get("path") or "")) and "parent.jobs." not in path:
            yield from _input(f"{name}.{label}", str(label), path, data)


def _input(name: str, label: str, path: str, data: Mapping[str, Any]) -> Iterator[Statement]:
    kind, mode = data.get("type", "uri_folder"), data.get("mode", "ro_mount")
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
            setting = f"{name}.{label}.{inner} {text}"
            if inner == "path" and not held and re.fullmatch(_FOLDER, str(text)):
                held = str(text)
                yield Statement(setting, "output", held)
            elif inner == "path":
                yield Statement(setting, why="the run folder is in one folder of a datastore, which output names")
            elif (inner, text) not in (("type", "uri_folder"), ("mode", "rw_mount")):
                yield Statement(
                    setting, why="the run folder is a folder that is mounted, and no data asset is made of it"
                )


_READERS: Mapping[str, Reader] = {
    "compute": _compute,
    "resources": _section(
        instance_count=_nothing, instance_type=_as("vm_size", r"\w+"), shm_size=_as("shm_size", r"[1-9]\d*[bkmg]")
    ),
    "distribution": _section(type=_nothing, process_count_per_instance=_nothing),
    "settings": _section(default_compute=_nothing),
    "limits": _section(timeout=_as("timeout", r"\d+")),
    "experiment_name": _as("experiment", r"[\w-]+"),
    "queue_settings": _section(job_tier=_tier),
    "identity": _section(type=_identity),
    "environment_variables": _variables,
    "services": _services,
    "inputs": inputs,
    "outputs": outputs,
}
