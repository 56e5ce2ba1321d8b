"""sentence-transformers: vectors of texts by an encoder, scores by a classifier of texts.

Names carry shapes: T tokens, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.export.runtimes.hugging_face import quiet_transformers, without_weights
from bertwright.export.runtimes.runtime import Outputs, Published, Reader, Runtime


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
