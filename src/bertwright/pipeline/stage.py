"""The stages, one row each, in the order of the data flow. The code of a stage is imported when it is started."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.corpus import config as corpus
from bertwright.evaluate import config as evaluate
from bertwright.examples import config as examples
from bertwright.export import config as export
from bertwright.pipeline import arguments as arguments_of
from bertwright.pipeline.arguments import Work
from bertwright.recipe import Recipe
from bertwright.report import config as report
from bertwright.tasks.members import task_of
from bertwright.train import config as train
from bertwright.train.machine.cpu_isa import limit_isa
from bertwright.train.machine.thread_policy import set_thread_policy
from bertwright.vocab import config as vocab


@dataclass(frozen=True)
class Stage:
    """What the pipeline knows about a stage without importing its code."""

    name: str
    """Also the name of its recipe section, its command, its package and its folder in the run folder."""
    about: str
    inputs: tuple[str, ...]
    """Names of the input artifacts."""
    without_corpus: tuple[str, ...] | None
    """The same for a recipe without a corpus; None: the stage needs a corpus."""
    version: int
    sections: Callable[[Recipe, Container[str]], Mapping[str, Any]]
    """The settings that determine its result. The second argument names the inputs of the existing artifact: data of a
    phase whose files no longer exist still counts if it is one of them."""
    runs: str
    """The stage's function, as "module:function"."""
    arguments: Callable[[Work], dict[str, Any]]
    """Computes the arguments of that function."""
    before: Callable[[Work], None] = lambda _: None
    """Called before that function's module is imported."""
    runs_instead: Callable[[Recipe], str] = lambda _: ""
    """The function to use instead for this recipe; "" for none."""
    parallel: bool = False
    """Whether an executor runs its task lists, and several ranks may share them."""

    def needs(self, recipe: Recipe) -> tuple[str, ...]:
        """The stage's input artifacts for this recipe; `RecipeError` if the stage needs a corpus and the recipe has
        none."""
        if recipe.corpus is not None and (self.name != "export" or recipe.source == "corpus"):
            return self.inputs
        if self.without_corpus is None:
            raise RecipeError(
                "the recipe has no [corpus], so there is no corpus to make. Add a [corpus], or start with the stage "
                "vocab."
            )
        return self.without_corpus

    def prepare(self, work: Work, finished: bool = False) -> Callable[[], Artifact | Path | None]:
        """Import the stage; returns its function bound to its arguments, which returns the result of the stage, or None
        on a rank that need not see it. `finished`: it has nothing to do, so the machine is not prepared for it."""
        module, _, function = (self.runs_instead(work.recipe) or self.runs).partition(":")
        if not finished:
            self.before(work)
        # Imported by name: importing all stages would load torch for a corpus and zstandard for a training.
        run = getattr(import_module(module), function)
        return partial(run, **self.arguments(work))


def _before_torch(work: Work) -> None:
    limit_isa(work.recipe.train, work.log)
    set_thread_policy(work.recipe.train, work.log)


def _corpus_sections(recipe: Recipe, inputs: Container[str]) -> Mapping[str, Any]:
    assert recipe.corpus is not None
    return corpus.sections(recipe.corpus)


def _examples_sections(recipe: Recipe, inputs: Container[str]) -> Mapping[str, Any]:
    named = recipe.train.imported_data()
    imported = [data for data in named if data.input in inputs or data.path.exists()]
    return examples.sections(recipe.examples, recipe.plan_sets(), imported)


def _examples_runs(recipe: Recipe) -> str:
    if own := task_of(recipe.task).own_examples:
        return own.made_by
    # Only with external data: the formats need packages that examples of a corpus alone do not.
    return "bertwright.formats.imported.run:run" if recipe.train.imported_data() else ""


def _export_sections(recipe: Recipe, inputs: Container[str]) -> Mapping[str, Any]:
    return export.sections(recipe.export, None if recipe.source == "corpus" else recipe.described_texts())


_ROWS = (
    Stage(
        name="corpus",
        about="Dump to sentence-per-line shards.",
        inputs=(),
        without_corpus=None,
        version=corpus.VERSION,
        sections=_corpus_sections,
        runs="bertwright.corpus.run:run",
        arguments=arguments_of.corpus,
        parallel=True,
    ),
    Stage(
        name="vocab",
        about="Shards to vocabulary.",
        inputs=("corpus",),
        without_corpus=(),
        version=vocab.VERSION,
        sections=lambda recipe, _: vocab.sections(recipe.vocab),
        runs="bertwright.vocab.run:run",
        arguments=arguments_of.vocab,
    ),
    Stage(
        name="examples",
        about="Shards and vocabulary to token store and pair plans.",
        inputs=("corpus", "vocab"),
        without_corpus=("vocab",),
        version=examples.VERSION,
        sections=_examples_sections,
        runs="bertwright.examples.run:run",
        runs_instead=_examples_runs,
        arguments=arguments_of.examples,
        parallel=True,
    ),
    Stage(
        name="train",
        about="Token store and plans to checkpoints and a model.",
        inputs=("examples", "vocab"),
        without_corpus=("examples", "vocab"),
        version=train.VERSION,
        sections=lambda recipe, _: arguments_of.train_settings(recipe).sections(recipe.next_sentence),
        runs="bertwright.train.run:run",
        arguments=arguments_of.train,
        before=_before_torch,
    ),
    Stage(
        name="evaluate",
        about="Held-out scores compared with baselines.",
        inputs=("train", "examples", "vocab"),
        without_corpus=("train", "examples", "vocab"),
        version=evaluate.VERSION,
        sections=lambda recipe, _: evaluate.sections(recipe.evaluate, recipe.evaluate_length()),
        runs="bertwright.evaluate.run:run",
        arguments=arguments_of.evaluate,
    ),
    Stage(
        name="export",
        about="The Hugging Face folder, checked by loading it back.",
        inputs=("train", "vocab", "evaluate", "corpus"),
        without_corpus=("train", "vocab", "evaluate", "examples"),  # the model card then describes the examples
        version=export.VERSION,
        sections=_export_sections,
        runs="bertwright.export.run:run",
        arguments=arguments_of.export,
    ),
    Stage(
        name="report",
        about="`report.html` and `summary.json`.",
        inputs=STAGE_NAMES,
        without_corpus=("vocab", "examples", "train", "evaluate", "export"),
        version=report.VERSION,
        sections=lambda recipe, _: report.sections(recipe.report),
        runs="bertwright.report.run:run",
        arguments=arguments_of.report,
    ),
)
STAGES: dict[str, Stage] = {row.name: row for row in _ROWS}
PARALLEL_STAGES = tuple(row.name for row in _ROWS if row.parallel)
