"""Vectors of texts as OpenAI's API gives them, for programs that have been written for it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.serve.messages import Embedding, Embeddings, EmbeddingsAnswer, Usage
from bertwright.serve.operations import Asked, Body, Operation, RefusedError
from bertwright.serve.served import Encoded


async def embed(asked: Asked) -> Body:
    """The vectors of texts, or of the ids of their tokens. With `dimensions`, the first numbers of each, divided by
    their length: useful if the model was trained for such vectors."""
    request: Embeddings = asked.request
    found = await _encoded(asked, request.input)
    vectors = [each.vector for each in found]
    if (size := request.dimensions) is not None:
        if size > len(vectors[0]):
            raise RefusedError(f"dimensions: the vectors of this model have {len(vectors[0])}.", "dimensions")
        vectors = [each[:size] / max(float(np.linalg.norm(each[:size])), 1e-12) for each in vectors]
    tokens = sum(each.tokens for each in found)
    return {
        "object": "list",
        "data": [
            Embedding(object="embedding", index=index, embedding=_written(vector, request.encoding_format))
            for index, vector in enumerate(vectors)
        ],
        "usage": Usage(prompt_tokens=tokens, total_tokens=tokens),
    }


async def _encoded(asked: Asked, given: Any) -> list[Encoded]:
    several = given if isinstance(given, list) and not isinstance(given[0], int) else [given]
    if isinstance(several[0], str):
        return await asked.compute(asked.model.encode, several, [[text] for text in several])
    entries = len(asked.model.encoder.tokenizer.vocabulary)
    if any(i >= entries for ids in several for i in ids):
        raise RefusedError(f"input: the ids of tokens are below {entries}.", "input")
    # A token has about four characters.
    return await asked.compute(asked.model.encode_ids, several, [["####" * len(ids)] for ids in several])


def _written(vector: NDArray[np.float32], form: str) -> list[float] | str:
    return vector.tolist() if form == "float" else b64encode(vector.astype("<f4").tobytes()).decode()


EMBEDDINGS = Operation(
    "/v1/embeddings", "Vectors of texts, as OpenAI's API gives them", "encode", Embeddings, EmbeddingsAnswer, embed
)
