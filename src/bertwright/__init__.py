"""From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

    from bertwright import Recipe, run
    run(Recipe.load("recipes/demo.toml"), "runs/demo")

The stages, in the order the text travels: corpus, vocab, examples, train, evaluate, export, report. Each is also
a function of `bertwright.stages` (`bertwright.stages.corpus(recipe, RunFolder(path))`), and each folder of the package
is one of them.
"""

from bertwright.recipe import Recipe
from bertwright.stages import RunFolder, run

__all__ = ["Recipe", "RunFolder", "__version__", "run"]
__version__ = "0.1.0"
