"""Whether the packages that a recipe asks for beside the base are installed; none is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from bertwright.check.verdict import Verdict, error
from bertwright.core.errors import MissingExtraError
from bertwright.core.redact import is_url
from bertwright.recipe import Recipe

_STORES = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"), "az": ("adlfs", "azure"), "abfs": ("adlfs", "azure")}
"""The package that reads addresses of a scheme, and the extra that has it."""


def packages(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """An error for each package that one of `stages` will need and that is missing."""
    if "export" in stages:
        yield from _needed(
            "export",
            "export checks its folder with transformers",
            "transformers",
            "hf",
            " Or stop before it (--until evaluate).",
        )
    if "vocab" in stages and getattr(recipe.vocab.trainer, "kind", "") == "sentencepiece":
        what = "vocab.trainer.kind = sentencepiece trains with sentencepiece"
        yield from _needed("vocab.trainer", what, "sentencepiece", "sentencepiece")
    if "corpus" in stages and recipe.corpus is not None:
        for source in recipe.corpus.source:
            scheme = source.path.partition("://")[0].lower() if is_url(source.path) else ""
            if scheme in _STORES:
                yield from _needed("corpus.source", f"reading {scheme}:// needs {_STORES[scheme][0]}", *_STORES[scheme])


def _needed(about: str, what: str, module: str, extra: str, instead: str = "") -> Iterator[Verdict]:
    if find_spec(module) is None:
        text = f"{what}, which is not installed: pip install 'bertwright[{extra}]'."
        yield error(about, text, instead.strip(), MissingExtraError)
