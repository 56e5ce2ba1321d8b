"""Read an Azure ML job file: the command of a command job, or of each job in a pipeline.

Settings of a pipeline for all steps complete each of them. In a script, `az ml job create` is replaced by the commands
of the job file that it submits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bertwright.core.errors import RecipeError
from bertwright.translate.azure_machine import statements
from bertwright.translate.launchers import Launch, Statement, strip_launchers
from bertwright.translate.shell import ShellCommand, parse_script

AZUREML = "azureml"
"""The launcher's name if a job file starts the processes."""
SUFFIXES = (".yml", ".yaml")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
"""Words that are kept only if every input in them has a value."""
_PROCESSES = {"pytorch", "mpi"}
"""Kinds of distribution that start identical processes, one rank each."""


def read_job(text: str, folder: Path = Path(), changes: Sequence[str] = ()) -> list[ShellCommand]:
    """Return the commands of a job file in order, with inputs substituted and the number of processes to start.

    `folder` is that of the file, and `changes` are values that replace some of it, as `key.key=value`. Raises
    `RecipeError` for other files, for commands in a separate file, and for a reference to nothing.
    """
    job, node = _read(text)
    if not isinstance(job, dict):
        raise RecipeError(
            "this is not a job file of Azure ML: it has no `command`. Give a job file, or a shell script (.sh)."
        )
    for change in changes:
        _change(job, change)
    found = _of_jobs(job, node)
    return [command._replace(folder=folder / command.folder) for command in found]


def _change(job: dict[Any, Any], change: str) -> None:
    """Set a value of the file, as `az` does for `--set`."""
    dotted, _, value = change.partition("=")
    *above, last = dotted.split(".")
    for name in above:
        inner = job.get(name)
        job[name] = job = inner if isinstance(inner, dict) else {}
    job[last] = _read(value)[0]


def _of_jobs(job: dict[Any, Any], node: Any) -> list[ShellCommand]:
    if "jobs" not in job:
        return _commands(job, node, "the job", {})
    if not isinstance(job["jobs"], dict):
        raise RecipeError("`jobs` is not a section. Write each job of the pipeline below it, by its name.")
    steps = section_of(job, "jobs")
    nodes = dict(_children(dict(_children(node)).get("jobs")))
    return [
        command
        for name, step in steps.items()
        for command in _commands(step if isinstance(step, dict) else {}, nodes.get(name), f"the job {name}", job)
    ]


def _read(text: str) -> tuple[Any, Any]:
    """Return the values of a YAML file, and its nodes, which alone know the line of each value."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        # Constructing merges what `<<` brings into a section into its node as well.
        return None if node is None else loader.construct_document(node), node
    # Never show the lines themselves, as PyYAML would: they may contain a secret.
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise RecipeError(f"this is not YAML: {error.problem}{where}. Give a job file of Azure ML.") from None
    except yaml.YAMLError:
        raise RecipeError(
            "this is not YAML: it contains a character that is not valid in text. Give a job file of Azure ML."
        ) from None
    except RecursionError:
        raise RecipeError("this YAML cannot be read: it is nested too deeply. Give a job file.") from None
    # Raised for values that do not match their type: 2024-13-45, !!int x, !!bool x, !!timestamp x.
    except (ValueError, LookupError, AttributeError, TypeError):
        text = "a value is invalid, for example the date 2024-13-45. Correct it, or put it in quotes"
        raise RecipeError(f"this YAML cannot be read: {text}.") from None


def _commands(job: Mapping[str, Any], node: Any, title: str, pipeline: Mapping[str, Any]) -> list[ShellCommand]:
    if not isinstance(job.get("command"), str):
        other = job.get("component") or job.get("trial")
        where = f"its command is in {other}; translate that file" if isinstance(other, str) else "give a command job"
        raise RecipeError(f"{title} has no `command`: {where}.")
    above = {f"parent.inputs.{name}": value for name, value in _inputs(pipeline, {}).items()}
    values = _inputs(job, above)
    known = {f"inputs.{name}": value for name, value in values.items()}
    known |= {f"outputs.{name}": name for name in section_of(job, "outputs")} | above
    value = dict(_children(node)).get("command")
    # The text of a block begins on the line after its | or >.
    first = value.start_mark.line + (1 if value.style in ("|", ">") else 0) if value else 0
    launch = _launch(add_pipeline(job, pipeline, values), title)
    variables = {k: str(v) for k, v in section_of(job, "environment_variables").items()}
    return [
        command._replace(
            # An assignment in the command replaces the variable of the file, as in the job's shell.
            variables=variables | dict(command.variables),
            line=first + command.line,
            launch=launch,
            folder=Path(str(job.get("code") or "")),
        )
        for command in parse_script(_fill(job["command"], known, title))
    ]


def _inputs(job: Mapping[str, Any], above: Mapping[str, str]) -> dict[str, str]:
    """Return the inputs that have a value: the value itself, or the path of the data."""
    found = {}
    for name, given in section_of(job, "inputs").items():
        if isinstance(given, Mapping):
            given = next((given[key] for key in ("value", "path", "default") if given.get(key) is not None), None)
        if given is not None:
            # An output of another step is replaced by the output's name.
            text = re.sub(r"\$\{\{\s*parent\.jobs\.\w+\.outputs\.(\w+)\s*\}\}", r"\1", str(given))
            found[str(name)] = _fill(text, above, f"the input {name}")
    return found


def _fill(text: str, known: Mapping[str, str], title: str) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in known:
            has = ", ".join(known) or "no inputs with values"
            raise RecipeError(f"{title}: {found[0]} does not name a known value (known: {has}). Correct it.")
        return known[found[1]]

    there = _OPTIONAL.sub(lambda found: found[1] if set(REFERENCE.findall(found[1])) <= set(known) else "", text)
    return REFERENCE.sub(value, there)


def _launch(job: Mapping[str, Any], title: str) -> Launch:
    resources, distribution = section_of(job, "resources"), section_of(job, "distribution")
    kind = str(distribution.get("type", "pytorch")).lower()
    if kind not in _PROCESSES:
        raise RecipeError(
            f"{title}: distribution {kind} does not start equal ranks. Translate a job of type pytorch or mpi."
        )
    nodes = _count(title, "instance_count", resources.get("instance_count", 1))
    processes = _count(title, "process_count_per_instance", distribution.get("process_count_per_instance", 1))
    return Launch(nodes, processes, AZUREML, stated=tuple(statements(job)))


def _count(title: str, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RecipeError(f"{title}: {name} {value} is not a number of processes. Give a number from 1.")
    return value


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of the values by key as written; a job whose key parses differently, such as 0x1, has none."""
    yield from ((str(key.value), value) for key, value in (node.value if isinstance(node, yaml.MappingNode) else ()))


def combine(own: Launch, outer: Launch) -> Launch:
    """Combine the launcher in front of a command (`own`) with the one that starts it (`outer`)."""
    if not own.by or outer.by != AZUREML:
        return own if own.by or not outer.by else outer
    # The file determines the machines, and a launcher in its command how many processes run there.
    nodes = own.nodes if own.nodes > 1 else outer.nodes
    processes = own.processes if own.processes > 1 else outer.processes
    return replace(outer, nodes=nodes, processes=processes, machine=own.machine, uncounted=own.uncounted)


REFERENCE = re.compile(r"\$\{\{\s*([\w.]+)\s*\}\}")
_OWN = {"$schema", "type", "jobs", "inputs", "outputs"}
"""Keys of a pipeline that say nothing about the machines of its steps."""


def add_pipeline(job: Mapping[str, Any], pipeline: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return a job with the settings that its pipeline, if it is in one, has for every step.

    `values` are the values of the job's inputs, without references to other inputs.
    """
    shared = {str(name): value for name, value in pipeline.items() if name not in _OWN}
    compute = section_of(pipeline, "settings").get("default_compute")
    whole = ({"compute": compute} if compute else {}) | shared | {str(name): value for name, value in job.items()}
    whole["inputs"] = {
        name: {**given, "path": values[name]} if isinstance(given, Mapping) and given.get("path") else given
        for name, given in _resolved(job, pipeline, "inputs").items()
        # A step before it makes what it reads, as the run does.
        if "parent.jobs." not in str(given)
    }
    whole["outputs"] = _resolved(job, pipeline, "outputs")
    return whole


def _resolved(job: Mapping[str, Any], pipeline: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return a section in which each reference to the same section of the pipeline is replaced by what is there."""
    above = {f"parent.{section}.{name}": given for name, given in section_of(pipeline, section).items()}
    found = {}
    for name, given in section_of(job, section).items():
        reference = REFERENCE.fullmatch(given) if isinstance(given, str) else None
        found[name] = above.get(reference[1], given) if reference else given
    return found


def section_of(job: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of a job with its keys as text; empty if there is none."""
    value = job.get(key)
    return {str(name): inner for name, inner in value.items()} if isinstance(value, Mapping) else {}


_CREATE = ("az", "ml", "job", "create")
_NAMES = {"-f": "--file", "-g": "--resource-group", "-w": "--workspace-name"}
"""Short names of options."""
_WORKSPACE = {"--resource-group": "resource_group", "--workspace-name": "name", "--subscription": "subscription"}
"""Options, and the keys of a place's workspace that correspond to them."""


class Submission(NamedTuple):
    """The arguments of `az ml job create`."""

    file: str
    """The job file; empty: none."""
    changes: tuple[str, ...]
    """Values of the file that it changes, as key=value."""
    workspace: dict[str, str]
    """The workspace, by keys of a place."""


def parse_submission(words: tuple[str, ...]) -> Submission | None:
    """Return what a command submits to Azure ML; None if it is another command."""
    words = strip_launchers(words)[1]
    if words[: len(_CREATE)] != _CREATE:
        return None
    options = [*_options(words[len(_CREATE) :])]
    files = [value for option, value in options if option == "--file"]
    # A variable or a placeholder is not a name.
    named = [(option, value) for option, value in options if option in _WORKSPACE and re.fullmatch(r"[\w.()-]+", value)]
    workspace = {_WORKSPACE[option]: value for option, value in named}
    return Submission("".join(files[-1:]), tuple(value for option, value in options if option == "--set"), workspace)


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value; an option that several values follow is yielded with each of them."""
    option = ""
    for word in words:
        if word.startswith("-"):
            typed, equals, value = word.partition("=")
            option = _NAMES.get(typed, typed)
            if equals:
                yield option, value
        else:
            yield option, word


def follow_submissions(commands: list[ShellCommand], folder: Path) -> list[ShellCommand]:
    """Return the commands, with those of a job file in place of the command that submits it, if the file is below
    `folder`. Raises `RecipeError` if it cannot be read or is no job file."""
    return [each for command in commands for each in _expand(command, parse_submission(command.words), folder)]


def _expand(command: ShellCommand, submitted: Submission | None, folder: Path) -> Iterator[ShellCommand]:
    if not submitted or not submitted.file or not (file := folder / submitted.file).is_file():
        yield command
        return
    try:
        made = read_job(file.read_text(encoding="utf-8-sig"), file.parent, submitted.changes)
    except (OSError, ValueError, RecipeError) as error:
        raise RecipeError(f"line {command.line}: {submitted.file}: {error}") from error
    stated = [Statement("az ml job create", "workspace", submitted.workspace)] if submitted.workspace else []
    for each in made:
        launch = replace(each.launch, stated=(*each.launch.stated, *stated))
        # Lines are those of the script, which a message about them names.
        yield each._replace(launch=launch, line=command.line)


def missing_job_file(command: ShellCommand) -> str:
    """Return what to do about a job file that a command submits and that is not here; empty for other commands."""
    if not (submitted := parse_submission(command.words)):
        return ""
    what = f"there is no file {submitted.file} here" if submitted.file else "it names no file (--file)"
    return (
        f"line {command.line}: az ml job create: {what}, so its job is not translated. Give the job file: bertwright "
        "translate --script FILE.yml."
    )
