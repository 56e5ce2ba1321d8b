"""sentence-transformers: vectors of texts by an encoder, scores by a classifier of texts.

Names carry shapes: T tokens, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.export.runtimes.hugging_face import quiet_transformers, without_weights
from bertwright.export.runtimes.runtime import Outputs, Published, Reader, Runtime
from bertwright.model.config_file import read_config_file


class SentenceTransformers(Runtime):
    """`Runtime` of sentence-transformers: `SentenceTransformer`, and for classifiers of texts `CrossEncoder`."""

    name = title = package = "sentence-transformers"
    install = "pip install 'bertwright[sentence-transformers]'"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        if model.head in ("token", "span", "choice"):
            return f"it computes vectors and scores of texts, and has no class for a {model.architecture}"
        return without_weights(model.folder)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """As `Runtime.open`."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            with quiet_transformers():
                reader = _Scores(model) if model.head == "sequence" else _Vectors(model)
            yield reader
        finally:
            torch.set_num_threads(before)

    def explain(self, model: Published, text: str) -> str:
        """As `Runtime.explain`: the folder may say that less of a text is read than the network can."""
        file = model.folder / "sentence_bert_config.json"
        stated = read_config_file(file) if file.is_file() else {}
        most = stated.get("max_seq_length")
        if not isinstance(most, int) or most >= model.positions or len(_all_ids(model.folder, text)) <= most:
            return ""
        return f"{file.name} says that at most {most} tokens of a text are read, of {model.positions} that could be."


class _Vectors:
    """The `Reader` of an encoder; its head, if it has one, is not loaded."""

    def __init__(self, model: Published) -> None:
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(model.folder), device="cpu", local_files_only=True).float()
        # A folder of others may ask for another vector, such as that of [CLS].
        modules = list(self.model)
        means = len(modules) == 2 or (len(modules) == 3 and model.unit_vectors)
        self.mean = means and getattr(modules[1], "pooling_mode", "") == "mean"

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`."""
        return _ids(self.model, text)

    def run(self, text: str) -> Outputs:
        """As `Reader.run`: "hidden", and "vector" if the folder asks for the mean, or that of length 1."""
        found: Any = self.model.encode(text, output_value=None, show_progress_bar=False)
        mask_T = found["attention_mask"].bool()
        outputs: dict[Any, Any] = {"hidden": found["token_embeddings"][mask_T].numpy()}
        return {**outputs, "vector": found["sentence_embedding"].numpy()} if self.mean else outputs


class _Scores:
    """The `Reader` of a classifier of texts."""

    def __init__(self, model: Published) -> None:
        from sentence_transformers import CrossEncoder

        self.model = CrossEncoder(str(model.folder), device="cpu", local_files_only=True).float()

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`."""
        return _ids(self.model, text)

    def run(self, text: str) -> Outputs:
        """As `Reader.run`: "logits" alone."""
        from torch.nn import Identity

        scores: Any = self.model.predict(text, activation_fn=Identity(), show_progress_bar=False)
        return {"logits": np.atleast_1d(scores)}


def _ids(model: Any, text: str) -> list[int]:
    features = model.preprocess([text])
    ids: list[int] = features["input_ids"][0][features["attention_mask"][0].bool()].tolist()
    return ids


@lru_cache(1)
def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def _all_ids(folder: Path, text: str) -> list[int]:
    ids: list[int] = _tokenizer(folder)(text, verbose=False)["input_ids"]
    return ids
