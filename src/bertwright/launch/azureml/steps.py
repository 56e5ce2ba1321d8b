"""Documents of Azure ML jobs, a single step and the pipeline of three; and which files of a recipe the jobs see."""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bertwright.core.dotted import overlap, texts
from bertwright.core.errors import RecipeError
from bertwright.core.overrides import set_key
from bertwright.core.toml import validate
from bertwright.launch.azureml.assets import SCHEMAS, Document, Input
from bertwright.launch.job import RECIPE, Job, list_files
from bertwright.recipe import Recipe

RUN = "run"
"""The run folder as a job sees it: a link to its output, next to the recipe; also the name of that output."""
AFTER = "after"
"""Name of the input by which a step waits for another one."""
IGNORE = f"*\n!{RECIPE}\n"
"""`.amlignore`: of the folder `launch`, a job receives only the recipe, not the record of earlier submissions."""
# -n replaces the link of another rank or an earlier start; without it, the new link would be made inside its target.
_ENTER = f'ln -sfn "${{{{outputs.{RUN}}}}}" {RUN}'
_REFERENCE = re.compile(r"\$\{\{(.*?)\}\}")


Service = Literal["tensorboard", "jupyter", "vscode"]
"""A service that can be opened while training runs."""


@dataclass(frozen=True)
class Step:
    """A command job, stand-alone or in a pipeline."""

    name: str
    words: tuple[str, ...]
    """The command after `bertwright`, without the recipe; the verb comes first."""
    machine: Document
    """`compute`, `resources` and similar keys of the machines that it runs on."""
    ranks: int = 1
    """Number of processes on each machine that train together."""
    services: Document = field(default_factory=dict)
    """Services that a browser or an editor connects to while it runs."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that its machines need; those of the place are applied after them."""


@dataclass(frozen=True)
class Shared:
    """What all steps of a run have in common."""

    environment: str
    """A registered environment, or the file of one."""
    output: str
    """The run folder in a datastore."""
    inputs: Mapping[str, Input]
    """Data, by name."""
    setup: Sequence[str]
    """Lines of shell before the command."""
    variables: Mapping[str, str]
    """Environment variables."""

    def document(self, step: Step, after: str = "") -> Document:
        """Return the document of a step, which starts when the step named `after` has succeeded."""
        inputs = {name: data.document() for name, data in self.inputs.items()}
        if after:
            # This input is the run folder again; it only makes this step wait for the other.
            inputs[AFTER] = {"type": "uri_folder", "path": f"${{{{parent.jobs.{after}.outputs.{RUN}}}}}"}
        several = step.ranks * step.machine["resources"]["instance_count"] > 1
        # Azure sets every variable of a rank except this one.
        here = {"LOCAL_WORLD_SIZE": str(step.ranks)} if several else {}
        variables = {**here, **step.variables, **self.variables}
        document: Document = {
            "type": "command",
            "code": ".",
            "command": self._command(step),
            "environment": self.environment,
            **({"environment_variables": variables} if variables else {}),
            **({"inputs": inputs} if inputs else {}),
            "outputs": {RUN: {"type": "uri_folder", "mode": "rw_mount", "path": self.output}},
            **step.machine,
        }
        if several:
            document["distribution"] = {"type": "pytorch", "process_count_per_instance": step.ranks}
        if step.services:
            document["services"] = step.services
        check_references(document, step.name)
        return document

    def _command(self, step: Step) -> str:
        # Quoted for the shell: the recipe itself expands patterns, and the path of a mount may contain blanks.
        overrides = [f'"{data.key}={_where(name, data)}"' for name, data in self.inputs.items()]
        verb, *options = step.words
        words = ["bertwright", verb, RECIPE, "--out", RUN, *options]
        # exec replaces the shell, so that bertwright receives SIGTERM. Each rank creates the link.
        last = " ".join(["exec", shlex.join(words), *overrides])
        return "\n".join(["set -e", *self.setup, _ENTER, last, ""])


def services(names: Sequence[Service], events: str, everywhere: bool) -> Document:
    """Return the documents of services by name, on the first machine or `everywhere`; `events` is the folder that
    TensorBoard shows."""
    every = {
        "tensorboard": {"type": "tensor_board", "log_dir": events},
        "jupyter": {"type": "jupyter_lab"},
        "vscode": {"type": "vs_code"},
    }
    # Azure knows only this value; without it a service runs on the first machine.
    nodes = {"nodes": "all"} if everywhere else {}
    return {name: {**every[name], **nodes} for name in names}


def job(name: str, experiment: str, document: Document) -> Document:
    """Return a step as a stand-alone job."""
    head = {"$schema": f"{SCHEMAS}/commandJob.schema.json", "display_name": name, "experiment_name": experiment}
    return head | document


def pipeline(name: str, experiment: str, steps: Sequence[Step], shared: Shared) -> Document:
    """Return a pipeline of steps that run one after another."""
    befores = ["", *(step.name for step in steps)]
    jobs = {step.name: shared.document(step, before) for step, before in zip(steps, befores, strict=False)}
    head = {"$schema": f"{SCHEMAS}/pipelineJob.schema.json", "type": "pipeline"}
    # Otherwise Azure would skip a step that once succeeded with the same inputs.
    settings = {"default_compute": "serverless", "force_rerun": True}
    return {**head, "display_name": name, "experiment_name": experiment, "settings": settings, "jobs": jobs}


def check_references(document: Document, step: str) -> None:
    """Raise `RecipeError` for a `${{...}}` that Azure would accept, and then fail on or leave as it is: one that is no
    input or output of the step, and any in an environment variable."""
    for name, value in document.get("environment_variables", {}).items():
        if _REFERENCE.search(value):
            raise RecipeError(
                f"environment.{name} = {value}: Azure inserts values only into the command. Its first lines are those "
                f"of setup: add setup = ['export {name}=\"{value}\"'] to the place instead."
            )
    known = {
        *(f"inputs.{name}" for name in document.get("inputs", {})),
        *(f"outputs.{name}" for name in document["outputs"]),
    }
    for found in _REFERENCE.findall(document["command"]):
        if found.strip() not in known:
            have = ", ".join(f"${{{{{name}}}}}" for name in sorted(known))
            raise RecipeError(
                f"${{{{{found}}}}} does not exist in the job {step}, which has {have}. Name one of these, or add a "
                "section [inputs.NAME] to the place."
            )


def _where(name: str, data: Input) -> str:
    """Return the value that an input's key is set to."""
    return f"${{{{inputs.{name}}}}}" + (f"/{data.below}" if data.below else "")


def with_inputs(job: Job, inputs: Mapping[str, Input]) -> Job:
    """Return the job with the paths of the inputs in the workspace in place of those of this machine.

    In the job, the command sets these keys to where the data is mounted. Raises `RecipeError` for an input whose key no
    recipe has or whose name is taken, and for syntax that is valid only in a command.
    """
    if AFTER in inputs:
        raise RecipeError(f"[inputs.{AFTER}]: by an input of this name, steps wait for each other. Give another name.")
    for _, text in texts(job.values):
        if "${{" in text:
            raise RecipeError(
                f"{text}: Azure inserts values into commands, not into a recipe. Give data as [inputs.NAME] of the "
                "place, with key and path."
            )
    values = copy.deepcopy(dict(job.values))
    for data in inputs.values():
        set_key(values, data.key, "/".join(filter(None, (data.path, data.below))), Recipe)
    # The result is not needed, only the message about a key that no recipe has.
    validate(Recipe, values, "[inputs]", {})
    return replace(job, written=replace(job.written, values=values))


def files_no_job_sees(job: Job, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the recipe's files that no job sees, as in `Job.files`."""
    given = tuple(data.key for data in inputs.values())
    return {key: path for key, path in job.files.items() if not any(overlap(key, each) for each in given)}


def upload_note(files: Mapping[str, str]) -> str:
    """Return what to do about files that no job sees; "" if there are none."""
    if not files:
        return ""
    return (
        f"The jobs do not see {list_files(files)}: upload what is missing, and add a section [inputs.NAME] to the "
        "place "
        f'for each, with key = "{next(iter(files))}" and its path in the workspace.'
    )


def events_folder(job: Job) -> str:
    """Return the folder of TensorBoard's events as the job that trains sees it; "" if the recipe writes none."""
    observers = job.values.get("train", {}).get("observers", [])
    sections = [{"kind": each} if isinstance(each, str) else each for each in observers]
    own = f"{RUN}/train/observers/tensorboard"
    return next((str(each.get("folder", own)) for each in sections if each["kind"] == "tensorboard"), "")
