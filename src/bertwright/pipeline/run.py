"""Run the stages of a recipe in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from bertwright.check.check_recipe import check_recipe
from bertwright.check.verdict import Verdict, from_exception, refuse
from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import ArtifactError, BertwrightError, RecipeError
from bertwright.core.files import make_folder, remove_leftovers, write_atomic
from bertwright.core.log import SILENT, Log
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, FolderLock, StageIncomplete, WorkSplit
from bertwright.estimate.machine_facts import OtherMachine
from bertwright.pipeline.arguments import Work
from bertwright.pipeline.forecast import forecast_line, keep_forecast
from bertwright.pipeline.lineage import inputs_of, matching_artifacts, refuse_other_training
from bertwright.pipeline.preview import PREVIEWED, is_unfinished, page_while_training, preview
from bertwright.pipeline.run_folder import RunFolder
from bertwright.pipeline.run_log import write_log
from bertwright.pipeline.stage import PARALLEL_STAGES, STAGES
from bertwright.recipe import Recipe


def run(
    recipe: Recipe,
    out: Path | str,
    stages: Sequence[str] = tuple(STAGES),
    log: Log = SILENT,
    executor: Executor | None = None,
    share: WorkSplit = SINGLE,
) -> RunFolder:
    """Run `stages` in order in the folder `out`; finished stages are skipped and interrupted ones continue.

    Task lists are run by `executor`, or by default by processes on this machine. A single stage of `PARALLEL_STAGES`
    may be shared by several processes, each with its own `share`; the last one to finish completes it.
    If training is not finished, `evaluate`, `export` and `report` without other stages use its newest checkpoint, and
    write to a separate folder, which is returned.
    Nothing is modified if the trained model in `out`, or the input of the first stage, belongs to other settings
    (`ArtifactError`), or if `check_recipe` finds an error, such as a missing source or package, too little memory or
    a folder that another user owns.
    """
    _refuse_impossible(stages, share)
    stages = _without_missing_corpus(recipe, stages)
    # Ranks of torchrun share one folder: only rank 0 locks it, writes the recipe and logs findings.
    first_rank = rank_and_world()[0] == 0
    _refuse_unready(recipe, Path(out), stages, log if first_rank else SILENT)
    if stages and set(stages) <= set(PREVIEWED) and is_unfinished(Path(out)):
        return RunFolder(preview(recipe, Path(out).absolute(), stages, log))
    folder = RunFolder(make_folder(Path(out).absolute()))  # workers may have another working directory
    with FolderLock(folder.path, share.world > 1, log) if first_rank else nullcontext() as lock:
        if first_rank and share.world == 1:
            remove_leftovers(folder.path, ".*.tmp")
        names = [name for name in STAGES if name in stages]
        _refuse_other_results(recipe, folder.path, names)
        before = _written(names, folder.path)
        with (
            _recipe_written(recipe, folder.path / "recipe.toml") if first_rank else nullcontext(),
            write_log(log, folder.path) if first_rank else nullcontext(log) as said,
        ):
            if first_rank and "train" in names and (plan := keep_forecast(recipe, folder)):
                said.say(forecast_line(plan))
            _run_stages(names, recipe, folder, said, executor, replace(share, lock=lock))
            if first_rank and before and None not in before.values() and _written(names, folder.path) == before:
                log.say(f"nothing to do: {folder.path.name} has {', '.join(names)}, made with these settings")
    return folder


def _written(names: Sequence[str], folder: Path) -> dict[Path, int | None]:
    """When the files that are written last by each of these stages were written; None for one that is not there."""
    last = {"report": (folder / "report.html", folder / "summary.json")}
    files = [path for name in names for path in last.get(name, (folder / name / MANIFEST,))]
    return {path: path.stat().st_mtime_ns if path.is_file() else None for path in files}


def _run_stages(
    names: Sequence[str], recipe: Recipe, folder: RunFolder, log: Log, executor: Executor | None, share: WorkSplit
) -> None:
    """Run one stage after another."""
    made_now: dict[str, str] = {}
    finished = matching_artifacts(recipe, folder.path)
    for name in names:
        try:
            inputs = inputs_of(name, recipe, folder.path, made_now)
            result = _start(name, Work(recipe, inputs, folder.path, log, executor, share), name in finished)
            if isinstance(result, Artifact):
                made_now[name] = result.fingerprint
        except StageIncomplete as rest:
            log.say(str(rest))


def run_stage(
    name: str,
    recipe: Recipe,
    folder: RunFolder,
    log: Log = SILENT,
    executor: Executor | None = None,
    share: WorkSplit = SINGLE,
) -> Artifact | Path | None:
    """Run one stage of the recipe in `folder`; returns its artifact, or the page for `report`. None on ranks other than
    0 that train.

    Raises `ArtifactError` if an input is missing or was made with other settings, and whatever the stage raises.
    """
    return _start(name, Work(recipe, inputs_of(name, recipe, folder.path), folder.path, log, executor, share))


def _start(name: str, work: Work, finished: bool = False) -> Artifact | Path | None:
    page = page_while_training(work.recipe, work.folder, work.made, work.log)
    # Stages are called directly from here, so that tracebacks pass through few files.
    return STAGES[name].prepare(replace(work, saved=page), finished)()


def _refuse_impossible(stages: Sequence[str], share: WorkSplit) -> None:
    """Raise errors that follow from the arguments, the environment and the packages alone."""
    if unknown := [name for name in stages if name not in STAGES]:
        raise RecipeError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(STAGES)}.")
    rank, world = share.rank, share.world
    if world > 1 and (len(stages) != 1 or stages[0] not in PARALLEL_STAGES):
        raise RecipeError(
            f"--world {world}: ranks can share only one of the stages {', '.join(PARALLEL_STAGES)}, started with the "
            "command of that stage."
        )
    if not 0 <= rank < world:
        raise RecipeError(f"--rank {rank} --world {world}: the ranks of {world} are 0 to {world - 1}.")
    # Otherwise every rank would prepare the same corpus in the same folder.
    if rank_and_world()[1] > 1 and list(stages) != ["train"]:
        raise RecipeError(
            "several ranks can only run the stage train. Prepare the data with one process (--until examples), then "
            "start `bertwright train RECIPE` on all ranks."
        )


def _without_missing_corpus(recipe: Recipe, stages: Sequence[str]) -> Sequence[str]:
    """The stages that the recipe has; if `corpus` is the only stage requested, the stage itself rejects it."""
    if recipe.corpus is not None or list(stages) == ["corpus"]:
        return stages
    return [name for name in stages if name != "corpus"]


def check_run(recipe: Recipe, out: Path, ranks: int = 1, at: OtherMachine | None = None) -> list[Verdict]:
    """Return every verdict on running all stages of a recipe in the folder `out`, with the checks that `run` makes
    before its first stage; arguments as in `check_recipe`."""
    stages = _without_missing_corpus(recipe, list(STAGES))
    verdicts = check_recipe(recipe, out, stages, ranks, at)
    if at is None and all(verdict.about != "--out" or verdict.level == "ok" for verdict in verdicts):
        try:
            _refuse_other_results(recipe, out, stages)
        except BertwrightError as cause:
            verdicts.append(from_exception("--out", cause))
    return verdicts


def _refuse_other_results(recipe: Recipe, folder: Path, names: Sequence[str]) -> None:
    """Raise `ArtifactError` if the trained weights in `folder`, or the inputs of the first of the stages `names`,
    belong to other settings."""
    # Before any stage: rebuilding a corpus for settings that training then rejects would cost hours.
    if "train" in names and (folder / "train").exists():
        refuse_other_training(recipe, folder)
    if names:
        # Only the first stage: the inputs of the others are made here with this recipe.
        inputs_of(names[0], recipe, folder)


def _refuse_unready(recipe: Recipe, out: Path, stages: Sequence[str], log: Log) -> None:
    """Raise predictable errors before hours of work, and log warnings."""
    _, world = rank_and_world()
    # A started run has its own weights, and finished examples contain the data of phases: what they were made from may
    # no longer exist.
    folder = RunFolder(out)
    recipe.check(ranks=world, given=not folder.begun, unread=folder.unread)
    verdicts = check_recipe(recipe, out, stages, world)
    refuse(verdicts)
    for verdict in verdicts:
        if verdict.level == "warning":
            log.say(f"warning: {verdict.about}: {verdict.sentence}")


@contextmanager
def _recipe_written(recipe: Recipe, path: Path) -> Iterator[None]:
    """Write the resolved recipe to `path`; if a stage rejects it, the previous recipe is restored."""
    before = path.read_bytes() if path.exists() else None
    recipe.write(path)
    try:
        yield
    except (ArtifactError, RecipeError):
        if before is not None and path.read_bytes() != before:
            write_atomic(path, before)
        raise
