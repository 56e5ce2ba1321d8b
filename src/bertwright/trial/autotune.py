"""Autotuning: train a recipe in every configuration that may be the fastest here, and keep the results in a table.

The table is written to a file after each trial, so that a stopped search can be resumed. Trials train on the examples
of the run, or on those of a sample of its text, which are made next to it and removed.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bertwright.core import __version__
from bertwright.core.child_process import run_child
from bertwright.core.config import result_settings
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import make_folder, remove, write_atomic
from bertwright.core.log import Log
from bertwright.core.resources import memory_size
from bertwright.core.work_split import FolderLock
from bertwright.estimate.machine_facts import gpu_names, torch_build, training_gpus
from bertwright.recipe import Recipe
from bertwright.train.engine.config import EngineConfig
from bertwright.train.memory.rank_memory import computing_of, fitting_sequences
from bertwright.trial.attempt import Tried, attempt
from bertwright.trial.search import Candidate, Sizes, Trial, halves, search, sizes
from bertwright.trial.shortened_recipe import PREPARED, link, rehearsal


@dataclass(frozen=True)
class TrialExamples:
    """The examples that trials train on."""

    recipe: Recipe
    """The rehearsed recipe, which replaces the original one."""
    folder: Path
    """A run folder that is finished up to the examples."""

    @contextmanager
    def run_folder(self) -> Iterator[Path]:
        """A new run folder with the same examples, removed at the end of the block."""
        folder = make_folder(self.folder.parent / "trial")
        try:
            link(tuple(name for name in PREPARED if (self.folder / name).exists()), self.folder, folder)
            yield folder
        finally:
            remove(folder)


Prepare = Callable[[Path], AbstractContextManager[TrialExamples]]
"""Makes examples in the given folder, which exists inside the `with` block."""


def autotune(
    tried: Tried, engines: Sequence[str], sizes: Sizes, table: Table, prepare: Prepare, log: Log
) -> list[Trial]:
    """The trials in search order, each taken from the table or run now and stored there."""
    with ExitStack() as stack:

        @cache  # at most once, and only if something is left to try
        def prepared() -> TrialExamples:
            return stack.enter_context(prepare(table.folder / "scratch"))

        def attempted(candidate: Candidate) -> Trial:
            if kept := table.trials.get(candidate):
                return kept
            examples = prepared()
            log.say(f"autotune: {_candidate_text(candidate)}")
            with examples.run_folder() as folder:
                return table.keep(attempt(replace(tried, recipe=examples.recipe), candidate, folder))

        return list(search([(name, again) for name in engines for again in (False, True)], sizes, attempted))


def machine_here(tried: Tried) -> dict[str, Any]:
    """Properties of the machine and its programs for which trials may differ."""
    gpus = list(gpu_names()) if training_gpus(tried.recipe) else []
    names = {"machine": platform.node(), "cpu": platform.machine(), "gpus": gpus}
    return {**names, "torch": torch_build().version, "bertwright": __version__}


def _candidate_text(candidate: Candidate) -> str:
    again = ", activations checkpointed" if candidate.checkpoint_activations else ""
    return f"{candidate.engine}, micro-batch {candidate.micro_batch}{again}"


@dataclass
class Table:
    """The completed trials, saved after each one."""

    folder: Path
    file: Path
    setting: dict[str, Any]
    limit: float
    """Time limit of a trial, in seconds."""
    trials: dict[Candidate, Trial]

    def keep(self, trial: Trial) -> Trial:
        """Add a trial and save the table; returns the trial."""
        self.trials[trial.candidate] = trial
        rows = [asdict(each) for each in self.trials.values()]
        write_atomic(
            self.file, json.dumps({"setting": self.setting, "limit": self.limit, "trials": rows}, indent=1).encode()
        )
        return trial


@contextmanager
def open_table(run: Path, tried: Tried, machine: Mapping[str, Any]) -> Iterator[Table]:
    """The table of an earlier start of the same search, or a new one; locked inside the `with` block.

    `machine`: properties of the machine and its programs that must match, as JSON values. Failed trials of an earlier
    start are repeated, and so are those that were too slow if the time limit is higher now.
    """
    # Beside the run folder, not in it: `run` refuses a folder with files of other origin.
    folder = make_folder(run.absolute().with_name(f"{run.name}.autotune"))
    file, setting = folder / f"phase-{tried.phase}.json", {**_setting(tried), **machine}
    with FolderLock(folder, busy=f"another autotune is working in {folder}. Wait until it has ended."):
        trials: dict[Candidate, Trial] = {}
        if file.is_file():
            try:
                kept = json.loads(file.read_text(encoding="utf-8"))
                rows = [{**row, "candidate": Candidate(**row["candidate"])} for row in kept["trials"]]
                waited = kept.get("limit", 0.0) >= tried.limit
                trials = {trial.candidate: trial for trial in (Trial(**row) for row in rows) if _stands(trial, waited)}
                differing = [key for key in setting if kept["setting"].get(key) != setting[key]]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ArtifactError(f"{file} is not a table of autotune ({error!r}). Move it away.") from error
            if differing:
                raise ArtifactError(
                    f"{file} was made with other settings ({', '.join(differing)}). Move it away, or give another "
                    "--out."
                )
        yield Table(folder, file, setting, tried.limit, trials)


def _stands(trial: Trial, waited: bool) -> bool:
    """Whether a trial's outcome is still valid; `waited`: its time limit was at least the current one."""
    return trial.outcome in ("trained", "out-of-memory") or (trial.outcome == "too-slow" and waited)


def _setting(tried: Tried) -> dict[str, Any]:
    """The settings that trials must share to be comparable: of the text and the vocabulary those that determine the
    examples, and of training also those that only affect its speed."""
    values = tried.recipe.to_json(exclude_none=True)
    train = values["train"]
    # What candidates differ in, and what no trial has.
    for name in ("checkpoint_activations", "observers", "mirror", "spot_notice"):
        train.pop(name, None)
    train["phases"][tried.phase].pop("micro_batch", None)
    parts = {name: result_settings(getattr(tried.recipe, name)) for name in ("corpus", "vocab", "examples")}
    parts |= {name: values.get(name) for name in ("model", "optim", "train")}
    # A vocabulary given as a file is not described by its section.
    return {**parts, "entries": tried.recipe.network().vocab_size, "ranks": tried.ranks, "steps": tried.steps}


@contextmanager
def trial_examples(recipe: Recipe, run: Path, log: Log, scratch: Path) -> Iterator[TrialExamples]:
    """The examples of the run folder `run`, or those of a sample of its text, in `scratch`, which is removed
    afterwards.

    `scratch` is also removed at the start, because a killed search leaves its files there. Raises `DataError` if the
    examples cannot be made.
    """
    remove(scratch)
    try:
        planned = rehearsal(recipe, run, make_folder(scratch / "sources"))
        log.say(f"autotune: with {planned.text}")
        data = make_folder(scratch / "data")
        link(planned.made, run, data)
        if "examples" not in planned.made:
            planned.recipe.write(scratch / "data.toml")
            command = ["run", str(scratch / "data.toml"), "--until", "examples", "--out", str(data), "--json"]
            ended = run_child(command, scratch / "data.log")
            if ended.code:
                raise DataError(f"autotune: the examples could not be made: {ended.reason}")
        yield TrialExamples(planned.recipe, data)
    finally:
        remove(scratch)


def engines_to_try(tried: Tried, requested: Sequence[str] | None) -> list[str]:
    """The requested engines, or all that suit this number of ranks; `RecipeError` for an unsuitable one.

    One rank has nothing to share, so its engine is the recipe's: another one would only drop settings of that section.
    """
    known: list[str] = [tried.recipe.train.engine.kind] if tried.ranks == 1 else ["ddp", "zero", "fsdp"]
    if tried.ranks > 1 and find_spec("deepspeed") and tried.recipe.optim.kind == "adamw":
        known.append("deepspeed")
    if unknown := [name for name in requested or () if name not in known]:
        raise RecipeError(
            f"--engine {unknown[0]}: with {tried.ranks} ranks and this recipe there are {', '.join(known)}."
        )
    return list(requested or known)


def first_size(tried: Tried) -> int:
    """The smallest micro-batch to try: a sixteenth of what is forecast to fit.

    Raises `RecipeError` if the recipe has no such phase, or if another setting determines the size of a forward pass.
    """
    phases = tried.recipe.train.phases
    if tried.phase >= len(phases):
        raise RecipeError(f"--phase {tried.phase}: the recipe has phases 0 to {len(phases) - 1}.")
    config = phases[tried.phase]
    if config.packing or config.micro_tokens:
        name = "packing" if config.packing else "micro_tokens"
        raise RecipeError(
            f"train.phases.{tried.phase}.{name} decides how many sequences a forward pass has, and autotune varies "
            f"micro_batch. Remove {name}: train.phases.{tried.phase}.{name}="
        )
    gpus = training_gpus(tried.recipe)
    computing = computing_of(tried.recipe.train, tried.recipe.optim, tried.ranks, gpu=bool(gpus))
    # Each rank has one GPU; the memory of AMD GPUs is not known.
    memory = min(gpus, default=0) or memory_size() / tried.ranks
    return max(1, fitting_sequences(tried.recipe.network(), config, computing, memory) // 16)


def sizes_to_try(tried: Tried, requested: Sequence[int] | None) -> Sizes:
    """The requested sizes, or doublings of the first size and its halves; `RecipeError` for one too large."""
    first = first_size(tried)
    if not requested:
        found = sizes(tried.share, first)
        return Sizes(found, halves(found[0]))
    if max(requested) > tried.share:
        raise RecipeError(
            f"--micro-batch {max(requested)}: a rank has {tried.share} sequences per step. Give a smaller micro-batch."
        )
    return Sizes(sorted(requested))


def keys_of(tried: Tried, candidate: Candidate) -> dict[str, Any]:
    """The recipe keys that select this candidate; without `train.engine` if the recipe has that engine, whose other
    settings, such as `reduction`, then stay."""
    keys: dict[str, Any] = {f"train.phases.{tried.phase}.micro_batch": candidate.micro_batch}
    if candidate.engine != tried.recipe.train.engine.kind:
        keys["train.engine"] = candidate.engine
    return keys | {"train.checkpoint_activations": candidate.checkpoint_activations}


def changes_of(tried: Tried, candidate: Candidate) -> list[str]:
    """Each key whose value the candidate changes, with both values, and with the settings of an engine that go."""
    train = tried.recipe.train
    before = {
        f"train.phases.{tried.phase}.micro_batch": json.dumps(train.phases[tried.phase].micro_batch),
        "train.engine": _engine_text(train.engine),
        "train.checkpoint_activations": json.dumps(train.checkpoint_activations),
    }
    after = {
        key: value if key == "train.engine" else json.dumps(value) for key, value in keys_of(tried, candidate).items()
    }
    return [f"{key} from {before[key]} to {value}" for key, value in after.items() if value != before[key]]


def _engine_text(engine: EngineConfig) -> str:
    options = engine.model_dump(exclude_defaults=True, exclude={"kind"})
    return " ".join([engine.kind, *(f"{name}={json.dumps(value)}" for name, value in options.items())])
