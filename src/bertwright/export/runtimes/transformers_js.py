"""transformers.js under Node.js, which reads the ONNX files of a published model and its tokenizer.json."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.child_process import answering_child
from bertwright.export.runtimes.onnx_runtime import ONNX, ONNX_FP16, ONNX_INT8, OnnxRuntime
from bertwright.export.runtimes.runtime import Head, Output, Outputs, Published, Reader, Runtime
from bertwright.export.runtimes.transformers_js_words import explain

CLASSES: Mapping[Head, str] = {
    "encoder": "AutoModel",
    "masked": "AutoModelForMaskedLM",
    "sequence": "AutoModelForSequenceClassification",
    "token": "AutoModelForTokenClassification",
    "span": "AutoModelForQuestionAnswering",
}
FAMILIES = ("bert", "distilbert", "modernbert")
_ABSENT = {("modernbert", "span"): "ModernBertForQuestionAnswering"}
"""The class that it does not have of a family's head."""
_PACKAGE = "@huggingface/transformers"
_PROGRAM = Path(__file__).with_suffix(".cjs")
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
# Node's own rules: node_modules in the working folder and above it, then in the folders of NODE_PATH.
_FIND = f"try {{ console.log(require.resolve('{_PACKAGE}', {{paths: [process.cwd()]}})) }} catch {{}}"
_SECONDS = 300
"""Longer than it takes to open any model, or to answer a text: a program that is silent for longer is stuck."""


class TransformersJs(Runtime):
    """transformers.js with the files that `writer` writes, which it knows as `dtype`."""

    package = _PACKAGE
    install = f"npm install {_PACKAGE}"

    def __init__(self, writer: OnnxRuntime, dtype: str, name: str, title: str) -> None:
        self.writer, self.dtype, self.name, self.title = writer, dtype, name, title
        self.reads, self.rounds = writer.name, writer.rounds

    def version(self) -> str:
        """As `Runtime.version`."""
        found = _installed()
        if found is None:
            return ""
        return str(json.loads((found.parents[1] / "package.json").read_text(encoding="utf-8"))["version"])

    def missing(self) -> str:
        """As `Runtime.missing`."""
        if shutil.which("node") is None:
            return f"Node.js is not installed: install its version 18 or newer, then {self.install}"
        if _installed() is None:
            return f"{_PACKAGE} is not installed here: {self.install}, or set NODE_PATH to the node_modules that has it"
        return ""

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        if why := self.writer.refusal(model):
            return why
        if model.head not in CLASSES:
            return "transformers.js has no class for the choice between several texts"
        if model.family not in FAMILIES:
            return f"of the families of transformers.js, {' and '.join(FAMILIES)} are known here, not {model.family}"
        if absent := _ABSENT.get((model.family, model.head)):
            return f"transformers.js has no {absent}"
        if lacking := [name for name in _TOKENIZER if not (model.folder / name).is_file()]:
            return f"there is no {' and no '.join(lacking)}; save the tokenizer with AutoTokenizer of transformers"
        return ""

    @contextmanager
    def open(self, model: Published, out: Path, threads: int, seconds: float = _SECONDS) -> Iterator[Reader]:
        """As `Runtime.open`. Raises `DataError`, also while reading, if the program ends or is silent for `seconds`."""
        folder = model.folder.resolve()
        settings = {
            "package": str(_installed()),
            "folder": str(folder),
            "files": os.path.relpath(out.resolve(), folder),
            "model": CLASSES[model.head],
            "dtype": self.dtype,
            "positions": model.positions,
            "masked": model.head == "masked",
            "threads": threads,
        }
        with answering_child(["node", str(_PROGRAM), json.dumps(settings)], self.title, seconds) as ask:
            ask(b"null")
            yield _TextReader(ask, model.head == "masked")

    def explain(self, model: Published, text: str) -> str:
        """As `Runtime.explain`."""
        return explain(model, text)


TRANSFORMERS_JS = TransformersJs(ONNX, "fp32", "transformers.js", "transformers.js")
TRANSFORMERS_JS_FP16 = TransformersJs(ONNX_FP16, "fp16", "transformers.js-fp16", "transformers.js, fp16")
TRANSFORMERS_JS_INT8 = TransformersJs(ONNX_INT8, "q8", "transformers.js-int8", "transformers.js, int8")


@dataclass(frozen=True)
class _TextReader:
    """See `Reader`."""

    ask: Callable[[bytes], bytes]
    masked: bool
    """Whether the logits are those of [MASK] alone."""

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`."""
        found: list[int] = self._answer(text, run=False)["ids"]
        return found

    def run(self, text: str) -> Outputs:
        """As `Reader.run`."""
        found = {name: _array(each) for name, each in self._answer(text, run=True)["outputs"].items()}
        outputs: dict[Output, NDArray[np.float32]] = {}
        if "last_hidden_state" in found:
            hidden_TH = found["last_hidden_state"][0]
            outputs = {"hidden": hidden_TH, "vector": hidden_TH.mean(0)}
        if "start_logits" in found:
            outputs["logits"] = np.stack([found["start_logits"][0], found["end_logits"][0]], -1)
        if "logits" in found:
            outputs["logits"] = found["logits"] if self.masked else found["logits"][0]
        return outputs

    def _answer(self, text: str, run: bool) -> Any:
        # In ASCII: node takes the separators U+2028 and U+2029 for ends of lines, too.
        return json.loads(self.ask(json.dumps({"text": text, "run": run}).encode("ascii")))


def _array(encoded: Mapping[str, Any]) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(encoded["data"]), np.float32).reshape(encoded["shape"])


def _installed() -> Path | None:
    """The file that node loads for the package; None if there is no node, or no package."""
    try:
        found = subprocess.run(["node", "-e", _FIND], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return Path(found) if found else None
