"""From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

    from bertwright import Recipe, run
    folder = run(Recipe.load("demo"), "runs/demo")
    folder.scores["mlm_loss"], folder.metrics[-1]["tokens_seen"], folder.summary["seconds"]

The stages, in pipeline order: corpus, vocab, examples, train, evaluate, export, report. Each can also be run by itself
(`bertwright.pipeline.run.run_stage("corpus", recipe, RunFolder(path))`), and is implemented in the subpackage of the
same name.

`wrap_graph(model, kind)` is useful on its own: with it, your own training loop runs a network compiled, or in ONNX
Runtime: docs/how-to/onnxruntime.md.
"""

from typing import TYPE_CHECKING, Any

from bertwright._version import __version__

if TYPE_CHECKING:
    from bertwright.pipeline.run import run
    from bertwright.pipeline.run_folder import RunFolder
    from bertwright.recipe import Recipe
    from bertwright.train.graph.wrap import wrap_graph

__all__ = ["Recipe", "RunFolder", "__version__", "run", "wrap_graph"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: worker processes import this package and need none of them."""
    if name == "Recipe":
        from bertwright.recipe import Recipe

        return Recipe
    if name == "RunFolder":
        from bertwright.pipeline.run_folder import RunFolder

        return RunFolder
    if name == "run":
        from bertwright.pipeline.run import run

        return run
    if name == "wrap_graph":
        from bertwright.train.graph.wrap import wrap_graph

        return wrap_graph
    raise AttributeError(f"module 'bertwright' has no attribute {name!r}")
