"""From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

    from bertwright import Recipe, run
    folder = run("demo")    # or run(Recipe.load("demo", ["train.seed=2"]), "runs/mine")
    folder.scores["mlm_loss"], folder.metrics[-1]["tokens_seen"], folder.summary["seconds"]

    from bertwright import Encoder
    encoder = Encoder("runs/demo")    # a run, or a folder of transformers
    encoder.encode(["one text", "another"]), encoder.fill_mask("A [MASK] in the garden.")

The stages, in pipeline order: corpus, vocab, examples, train, evaluate, export, report. Each can also be run by itself
(`bertwright.pipeline.run.run_stage("corpus", recipe, RunFolder(path))`), and is implemented in the subpackage of the
same name.

`wrap_graph(model, kind)` is useful on its own: with it, your own training loop runs a network compiled, or in ONNX
Runtime: docs/how-to/onnxruntime.md. The bases of plugins are in `bertwright.plugins`. docs/api.md has all of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.core import __version__

if TYPE_CHECKING:
    from bertwright.core.log import SILENT, Log
    from bertwright.core.tasks import Executor
    from bertwright.core.work_split import WorkSplit
    from bertwright.examples.batch import Batch
    from bertwright.model.text_encoder import Encoder, load_model, load_tokenizer
    from bertwright.pipeline.run_folder import RunFolder
    from bertwright.recipe import Recipe
    from bertwright.train.graph.graph import wrap_graph

__all__ = [
    "SILENT",
    "Batch",
    "Encoder",
    "Recipe",
    "RunFolder",
    "__version__",
    "load_model",
    "load_tokenizer",
    "run",
    "wrap_graph",
]
_MODULES = {
    "Batch": "bertwright.examples.batch",
    "Encoder": "bertwright.model.text_encoder",
    "Recipe": "bertwright.recipe",
    "RunFolder": "bertwright.pipeline.run_folder",
    "SILENT": "bertwright.core.log",
    "load_model": "bertwright.model.text_encoder",
    "load_tokenizer": "bertwright.model.text_encoder",
    "wrap_graph": "bertwright.train.graph.graph",
}
"""Where the public names are defined; each module is imported on first use."""


def run(
    recipe: "Recipe | Path | str",
    out: Path | str | None = None,
    stages: Sequence[str] | None = None,
    log: "Log | None" = None,
    executor: "Executor | None" = None,
    share: "WorkSplit | None" = None,
) -> "RunFolder":
    """Run `stages` (default: all) of a recipe in the folder `out`; finished stages are skipped and interrupted ones
    continue. Returns the run folder.

    `recipe` may also be a path, or the name of a recipe that comes with the package; `out` is then by default
    `runs/NAME`, or the run folder that `recipe` is, as on the command line. Progress is shown on standard error;
    `log=SILENT` shows nothing, and any object with the methods of `bertwright.core.log.Log` receives it instead.
    `executor`, `share` and the errors are those of `bertwright.pipeline.run.run`.
    """
    from bertwright.core.errors import RecipeError
    from bertwright.core.work_split import SINGLE
    from bertwright.pipeline.run import run as run_stages
    from bertwright.pipeline.run_folder import RunFolder
    from bertwright.pipeline.stage import STAGES
    from bertwright.recipe import Recipe
    from bertwright.shipped import default_run_folder

    if not isinstance(recipe, Recipe):
        out = default_run_folder(recipe) if out is None else out
        # The folders that training started from may be gone once it has begun.
        folder = RunFolder(out)
        recipe = Recipe.load(recipe, given=not folder.begun, unread=folder.unread)
    if out is None:
        raise RecipeError('out is missing: a loaded recipe has no name. Give the run folder, such as "runs/mine".')
    names = tuple(STAGES) if stages is None else (stages,) if isinstance(stages, str) else stages
    if log is not None:
        return run_stages(recipe, out, names, log, executor, share or SINGLE)
    from bertwright.cli.terminal import Terminal

    with Terminal() as shown:
        return run_stages(recipe, out, names, shown, executor, share or SINGLE)


def __getattr__(name: str) -> Any:
    """Import a public name on first use: worker processes import this package and need none of them."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'bertwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted(__all__)
