"""The packages that a recipe needs, and verdicts on those that are missing; none of them is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from bertwright.check.verdict import Verdict, error
from bertwright.core.addresses import is_url
from bertwright.core.errors import MissingExtraError
from bertwright.export.config import Format
from bertwright.recipe import Recipe
from bertwright.train.monitor.observers.config import ObserverPlugin

_STORES = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"), "az": ("adlfs", "azure"), "abfs": ("adlfs", "azure")}
"""The package that accesses addresses of each scheme, and the extra that installs it."""

_LLAMA_CPP = (("xllamacpp",), "llama-cpp")
FORMATS: Mapping[Format, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("onnx", "onnx-fp16", "onnx-int8"), (("onnx", "onnxruntime"), "onnx")),
    "openvino": (("openvino",), "openvino"),
    **dict.fromkeys(("ctranslate2", "ctranslate2-int8"), (("ctranslate2",), "ctranslate2")),
    **dict.fromkeys(("gguf", "gguf-f16", "gguf-q8"), _LLAMA_CPP),
    "static": (("model2vec",), "static"),
    "spacy": (("spacy", "spacy_curated_transformers"), "spacy"),
}
"""The modules that write each format of `export.formats`, and the extra that installs them."""

ASKING = ("corpus", "vocab", "train", "export")
"""The stages that may need optional packages."""
REQUIRED = {
    "zstandard": ("corpus", "vocab", "examples"),
    "pycld2": ("corpus",),
    "py3langid": ("corpus",),
    "rensa": ("corpus",),
    "sentencex": ("corpus",),
    "tokenizers": ("vocab", "examples", "evaluate", "export"),
    "torch": ("train", "evaluate", "export"),
    "safetensors": ("train", "evaluate", "export"),
}
"""Packages that are always installed with bertwright, and the stages that import each."""
_ELSEWHERE = "Or do that where it is installed: results are used wherever their folder is."


class Need(NamedTuple):
    """A package that a stage will import."""

    key: str
    """The recipe key, or the stage, that needs it."""
    what: str
    """What needs it, as a sentence without the full stop."""
    package: str
    extra: str
    """The extra of bertwright that installs it; "" for a package that bertwright always requires."""
    instead: str = ""
    """How to do without it."""

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'bertwright[{self.extra}]'" if self.extra else f"pip install {self.package}"


def required_packages(recipe: Recipe, stages: Sequence[str]) -> Iterator[Need]:
    """The packages that every installation should have, as far as the `stages` of a recipe import them. An environment
    that only trains (`make ort-env`) lacks some."""
    for package, importing in REQUIRED.items():
        # Without a corpus, no stage reads its shards.
        unread = package == "zstandard" and recipe.corpus is None
        if (named := [stage for stage in importing if stage in stages]) and not unread:
            what = f"{', '.join(named)} need{'s' * (len(named) == 1)} the package {package}"
            yield Need(named[0], what, package, "", _ELSEWHERE)


def optional_packages(recipe: Recipe, stages: Sequence[str]) -> Iterator[Need]:
    """The optional packages that the `stages` of a recipe import."""
    if "export" in stages:
        what = "export checks its folder with transformers"
        yield Need("export", what, "transformers", "hf", "Or stop before that stage (--until evaluate).")
        for name in recipe.export.formats:
            modules, extra = FORMATS[name]
            for module in modules:
                yield Need("export.formats", f"export.formats has {name}, which {module} writes", module, extra)
    if "train" in stages:
        yield from _of_training(recipe)
    if "vocab" in stages and getattr(recipe.vocab.trainer, "kind", "") == "sentencepiece":
        what = "vocab.trainer.kind = sentencepiece trains with sentencepiece"
        yield Need("vocab.trainer", what, "sentencepiece", "sentencepiece")
    if "corpus" in stages and recipe.corpus is not None:
        for source in recipe.corpus.source:
            yield from _storage_package("corpus.source", "reading", source.path)


def _of_training(recipe: Recipe) -> Iterator[Need]:
    for watching in recipe.train.observers:
        if isinstance(watching, ObserverPlugin):  # imported with the recipe
            continue
        what = f"train.observers = {watching.kind} needs {watching.package}"
        yield Need("train.observers", what, watching.package, watching.extra)
    if recipe.train.engine.kind == "deepspeed":
        yield Need("train.engine", "train.engine = deepspeed needs deepspeed", "deepspeed", "deepspeed")
    yield from _storage_package("train.mirror", "writing", recipe.train.mirror)


def _storage_package(key: str, what: str, path: str) -> Iterator[Need]:
    scheme = path.partition("://")[0].lower() if is_url(path) else ""
    if scheme in _STORES:
        yield Need(key, f"{what} {scheme}:// needs {_STORES[scheme][0]}", *_STORES[scheme])


def packages(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield an error for each missing package that one of `stages` needs."""
    for need in (*required_packages(recipe, stages), *optional_packages(recipe, stages)):
        if find_spec(need.package) is None:
            text = f"{need.what}, which is not installed: {need.command}."
            yield error(need.key, text, need.instead, MissingExtraError)
    if "export" in stages and any(FORMATS[name] == _LLAMA_CPP for name in recipe.export.formats):
        from bertwright.export.runtimes.llama_cpp_converter import (
            missing_sources,  # needs numpy, which a check does not
        )

        if why := missing_sources():
            yield error("export.formats", f"export.formats has GGUF: {why}.", "", MissingExtraError)
