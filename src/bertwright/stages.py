"""The stages in the order the text travels, and the walk over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bertwright.chain import finished_artifact, inputs_of, refuse_other_training
from bertwright.check.recipe import check_recipe
from bertwright.check.verdict import refuse
from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import make_folder, read_json, remove_leftovers, write_atomic
from bertwright.core.lock import FolderLock
from bertwright.core.log import SILENT, Log
from bertwright.core.ranks import WHOLE, OthersToFinish, Share
from bertwright.core.tasks import Executor
from bertwright.look import LOOKS, is_unfinished, look, page_while_training
from bertwright.recipe import Recipe
from bertwright.results import MetricsRow, Scores, Summary


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run; every run has the same parts."""

    path: Path
    made_now: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The fingerprints of what one walk has made, or found finished, so far."""

    @property
    def begun(self) -> bool:
        """Whether training has begun, so that what it started from is needed no more."""
        return any((self.path / "train" / name).exists() for name in ("checkpoints", MANIFEST))

    @property
    def metrics(self) -> list[MetricsRow]:
        """The logged steps of training so far, in order; a run that is still training has some already."""
        from bertwright.train.metrics import read_rows

        return cast(list[MetricsRow], read_rows(self._existing("train/metrics.jsonl", "train")))

    @property
    def scores(self) -> Scores:
        """The held-out scores of the finished model beside their baselines."""
        return cast(Scores, read_json(self.artifact("evaluate").file("scores.json")))

    @property
    def summary(self) -> Summary:
        """The headline numbers of the finished run."""
        return cast(Summary, read_json(self._existing("summary.json", "report")))

    def _existing(self, name: str, stage: str) -> Path:
        if not (self.path / name).is_file():
            raise ArtifactError(
                f"{self.path / name} is not there. Make it first: bertwright {stage} RECIPE --out {self.path}"
            )
        return self.path / name

    def artifact(self, stage: str) -> Artifact:
        """The finished artifact of a stage, whatever its settings; an error names the verb that makes it."""
        return finished_artifact(self.path, stage)

    def inputs(self, stage: str, recipe: Recipe) -> dict[str, Artifact]:
        """The artifacts that a stage is made of, by name; an error says which is missing or of another recipe."""
        return inputs_of(stage, recipe, self.path, self.made_now)


def corpus(
    recipe: Recipe, folder: RunFolder, log: Log = SILENT, executor: Executor | None = None, share: Share = WHOLE
) -> Artifact:
    """Dump to sentence-per-line shards."""
    from bertwright.corpus.run import run

    if recipe.corpus is None:
        raise RecipeError("the recipe has no [corpus], so there is none to make. Write one, or start with vocab.")
    return run(recipe.corpus, folder.path / "corpus", log, executor, share)


def vocab(recipe: Recipe, folder: RunFolder, log: Log = SILENT) -> Artifact:
    """Shards to vocabulary."""
    from bertwright.vocab.run import run

    made = folder.inputs("vocab", recipe)
    return run(recipe.vocab, made.get("corpus"), folder.path / "vocab", log)


def examples(
    recipe: Recipe, folder: RunFolder, log: Log = SILENT, executor: Executor | None = None, share: Share = WHOLE
) -> Artifact:
    """Shards and vocabulary to token store and pair plans."""
    from bertwright.examples.run import run

    made = folder.inputs("examples", recipe)
    inputs = made.get("corpus"), made["vocab"]
    out, foreign = folder.path / "examples", recipe.train.foreign_data()
    return run(recipe.examples, recipe.plan_sets(), *inputs, out, log, executor, share, foreign)


def train(recipe: Recipe, folder: RunFolder, log: Log = SILENT) -> Artifact:
    """Token store and plans to checkpoints and a model."""
    from bertwright.train.run import run

    made = folder.inputs("train", recipe)
    sections, inputs = (recipe.train, recipe.model, recipe.optim), (made["examples"], made["vocab"])
    page = page_while_training(recipe, folder.path, made, log)
    return run(*sections, *inputs, folder.path / "train", log, _scored_after(recipe, made["examples"]), page)


def _scored_after(recipe: Recipe, examples: Artifact) -> int:
    """Tokens of room of the held-out sequences that the stage `evaluate` scores."""
    length = recipe.evaluate_length()
    (sequences,) = examples.counts["heldout"]["rows"][f"{length}"]
    return length * min(int(sequences), recipe.evaluate.max_sequences or int(sequences))


def evaluate(recipe: Recipe, folder: RunFolder, log: Log = SILENT) -> Artifact:
    """Held-out scores beside their baselines."""
    from bertwright.evaluate.run import run

    made = folder.inputs("evaluate", recipe)
    inputs = made["train"], made["examples"], made["vocab"]
    return run(recipe.evaluate, recipe.evaluate_length(), *inputs, folder.path / "evaluate", log)


def export(recipe: Recipe, folder: RunFolder, log: Log = SILENT) -> Artifact:
    """The Hugging Face folder, checked by loading it back."""
    from bertwright.export.run import run

    made = folder.inputs("export", recipe)
    source = made["corpus" if recipe.corpus else "examples"]
    inputs = made["train"], made["vocab"], made["evaluate"], source
    return run(recipe.export, *inputs, folder.path / "export", log, recipe.texts)


def report(recipe: Recipe, folder: RunFolder, log: Log = SILENT) -> Path:
    """`report.html` and `summary.json`."""
    from bertwright.report.run import run

    return run(recipe.report, folder.path, folder.inputs("report", recipe), log)


Stage = Callable[..., Artifact | Path]
STAGES: dict[str, Stage] = {f.__name__: f for f in (corpus, vocab, examples, train, evaluate, export, report)}
SPREAD = ("corpus", "examples")
"""The stages whose task lists an executor does, and several ranks share."""


def run(
    recipe: Recipe,
    out: Path | str,
    stages: Sequence[str] = tuple(STAGES),
    log: Log = SILENT,
    executor: Executor | None = None,
    rank: int = 0,
    world: int = 1,
) -> RunFolder:
    """Walk `stages` in travel order inside the folder `out`; what is finished is skipped, what is begun continues.

    Task lists are done by `executor`; without one, by processes on this machine. A stage of `SPREAD` alone may be
    shared by `world` processes, each with a `rank` of its own; the last one to finish completes it.
    Where training is not finished, `evaluate`, `export` and `report` by themselves are of its newest checkpoint, and
    lie in a folder of their own, which is returned.
    Nothing is touched when the trained model in `out`, or what the first stage is made of, belongs to other settings
    (`ArtifactError`), or when `check_recipe` finds an error, such as a missing source or package, too little memory or
    a folder of someone else's.
    """
    _refuse_impossible(stages, rank, world)
    stages = _without_missing_corpus(recipe, stages)
    first_rank = not _several() or int(os.environ.get("RANK", "0")) == 0
    _refuse_unready(recipe, Path(out), stages, log if first_rank else SILENT)
    if stages and set(stages) <= set(LOOKS) and is_unfinished(Path(out)):
        return RunFolder(look(recipe, Path(out).absolute(), stages, log))
    folder = RunFolder(make_folder(Path(out).absolute()))  # workers may have another working directory
    with FolderLock(folder.path, world > 1, log) if first_rank else nullcontext() as lock:
        if first_rank and world == 1:
            remove_leftovers(folder.path, ".*.tmp")
        if "train" in stages and (folder.path / "train").exists():
            refuse_other_training(recipe, folder.path)
        walk = [name for name in STAGES if name in stages]
        if walk and walk[0] != "corpus":
            folder.inputs(walk[0], recipe)
        with _recipe_written(recipe, folder.path / "recipe.toml") if first_rank else nullcontext():
            for name in walk:
                where = {"executor": executor, "share": Share(rank, world, lock)} if name in SPREAD else {}
                try:
                    made = STAGES[name](recipe, folder, log, **where)
                    if isinstance(made, Artifact):
                        folder.made_now[name] = made.fingerprint
                except OthersToFinish as rest:
                    log.say(str(rest))
    return RunFolder(folder.path)


def _refuse_impossible(stages: Sequence[str], rank: int, world: int) -> None:
    """Raise what can be told from the arguments, the environment and the packages alone."""
    if unknown := [name for name in stages if name not in STAGES]:
        raise RecipeError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(STAGES)}.")
    if world > 1 and (len(stages) != 1 or stages[0] not in SPREAD):
        raise RecipeError(f"--world {world}: ranks can share one of the stages {', '.join(SPREAD)}, by its own verb.")
    if not 0 <= rank < world:
        raise RecipeError(f"--rank {rank} --world {world}: the ranks of {world} are 0 to {world - 1}.")
    if _several() and list(stages) != ["train"]:
        raise RecipeError(
            "several ranks can only train. Prepare with one process (--until examples), then start "
            "`bertwright train RECIPE` on all ranks."
        )


def _without_missing_corpus(recipe: Recipe, stages: Sequence[str]) -> Sequence[str]:
    """The stages that the recipe has; the corpus asked for by itself is refused by its stage."""
    if recipe.corpus is not None or list(stages) == ["corpus"]:
        return stages
    return [name for name in stages if name != "corpus"]


def _several() -> bool:
    """Whether a launcher such as torchrun started several of these processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _refuse_unready(recipe: Recipe, out: Path, stages: Sequence[str], log: Log) -> None:
    """Raise before hours of work what can be told beforehand; say what may go wrong."""
    recipe.check(given=not RunFolder(out).begun)
    verdicts = check_recipe(recipe, out, stages, int(os.environ.get("WORLD_SIZE", "1")))
    refuse(verdicts)
    for verdict in verdicts:
        if verdict.level == "warning":
            log.say(f"warning: {verdict.about}: {verdict.sentence}")


@contextmanager
def _recipe_written(recipe: Recipe, path: Path) -> Iterator[None]:
    """The resolved recipe at `path`; a recipe that a stage refuses does not stay there in the place of the old one."""
    before = path.read_bytes() if path.exists() else None
    recipe.write(path)
    try:
        yield
    except ArtifactError:
        if before is not None and path.read_bytes() != before:
            write_atomic(path, before)
        raise
