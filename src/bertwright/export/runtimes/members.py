"""The runtimes that a published model is certified in, in the order of tables; the first is the reference."""

from __future__ import annotations

from bertwright.core.errors import RecipeError
from bertwright.export.runtimes.ctranslate2 import CTranslate2
from bertwright.export.runtimes.hugging_face import Transformers
from bertwright.export.runtimes.llama_cpp import LlamaCpp
from bertwright.export.runtimes.onnx_runtime import ONNX, ONNX_FP16, ONNX_INT8
from bertwright.export.runtimes.openvino import OpenVino
from bertwright.export.runtimes.runtime import Runtime
from bertwright.export.runtimes.sentence_transformers import SentenceTransformers
from bertwright.export.runtimes.spacy import Spacy
from bertwright.export.runtimes.static import Static
from bertwright.export.runtimes.transformers_js import TRANSFORMERS_JS, TRANSFORMERS_JS_FP16, TRANSFORMERS_JS_INT8

RUNTIMES: tuple[Runtime, ...] = (
    Transformers(),
    SentenceTransformers(),
    ONNX,
    ONNX_FP16,
    ONNX_INT8,
    OpenVino(),
    TRANSFORMERS_JS,
    TRANSFORMERS_JS_FP16,
    TRANSFORMERS_JS_INT8,
    CTranslate2(),
    CTranslate2("int8"),
    LlamaCpp(),
    LlamaCpp("f16"),
    LlamaCpp("q8_0"),
    Static(),
    Spacy(),
)


def runtime_named(name: str) -> Runtime:
    """The runtime called `name`; `RecipeError` if there is none."""
    for runtime in RUNTIMES:
        if runtime.name == name:
            return runtime
    raise RecipeError(f"there is no runtime {name!r}; choose from {', '.join(each.name for each in RUNTIMES)}.")
