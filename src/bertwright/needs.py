"""The optional packages that a recipe needs; none of them is imported or looked up here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bertwright.core.redact import is_url
from bertwright.recipe import Recipe
from bertwright.train.precision.config import Fp8Config

_STORES = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"), "az": ("adlfs", "azure"), "abfs": ("adlfs", "azure")}
"""The package that accesses addresses of each scheme, and the extra that installs it."""

ASKING = ("corpus", "vocab", "train", "export")
"""The stages that may need optional packages."""


class Need(NamedTuple):
    """A package that a stage will import."""

    key: str
    """The recipe key, or the stage, that needs it."""
    what: str
    """What needs it, as a sentence without the full stop."""
    package: str
    extra: str
    """The extra of bertwright that installs it."""
    instead: str = ""
    """How to do without it."""


def needs(recipe: Recipe, stages: Sequence[str]) -> Iterator[Need]:
    """The optional packages that the `stages` of a recipe import."""
    if "export" in stages:
        what = "export checks its folder with transformers"
        yield Need("export", what, "transformers", "hf", "Or stop before that stage (--until evaluate).")
    if "train" in stages:
        yield from _of_training(recipe)
    if "vocab" in stages and getattr(recipe.vocab.trainer, "kind", "") == "sentencepiece":
        what = "vocab.trainer.kind = sentencepiece trains with sentencepiece"
        yield Need("vocab.trainer", what, "sentencepiece", "sentencepiece")
    if "corpus" in stages and recipe.corpus is not None:
        for source in recipe.corpus.source:
            yield from _stored("corpus.source", "reading", source.path)


def _of_training(recipe: Recipe) -> Iterator[Need]:
    for watching in recipe.train.observers:
        what = f"train.observers = {watching.kind} needs {watching.package}"
        yield Need("train.observers", what, watching.package, watching.extra)
    if isinstance(recipe.train.precision, Fp8Config):
        yield Need("train.precision", "train.precision = fp8 computes with torchao", "torchao", "fp8")
    if recipe.train.engine.kind == "deepspeed":
        yield Need("train.engine", "train.engine = deepspeed needs deepspeed", "deepspeed", "deepspeed")
    yield from _stored("train.mirror", "writing", recipe.train.mirror)


def _stored(key: str, what: str, path: str) -> Iterator[Need]:
    scheme = path.partition("://")[0].lower() if is_url(path) else ""
    if scheme in _STORES:
        yield Need(key, f"{what} {scheme}:// needs {_STORES[scheme][0]}", *_STORES[scheme])
