"""From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

    from bertwright import Recipe, run
    folder = run(Recipe.load("demo"), "runs/demo")
    folder.scores["mlm_loss"], folder.metrics[-1]["tokens_seen"], folder.summary["seconds"]

The stages, in the order the text travels: corpus, vocab, examples, train, evaluate, export, report. Each is also
a function of `bertwright.stages` (`bertwright.stages.corpus(recipe, RunFolder(path))`), and each folder of the package
is one of them.
"""

from typing import TYPE_CHECKING, Any

from bertwright._version import __version__

if TYPE_CHECKING:
    from bertwright.recipe import Recipe
    from bertwright.stages import RunFolder, run

__all__ = ["Recipe", "RunFolder", "__version__", "run"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: worker processes import this package and need none of them."""
    if name == "Recipe":
        from bertwright.recipe import Recipe

        return Recipe
    if name in ("RunFolder", "run"):
        from bertwright import stages

        return getattr(stages, name)
    raise AttributeError(f"module 'bertwright' has no attribute {name!r}")
