"""Where examples made elsewhere lie once they are brought in: flat arrays that can be mapped.

    imported/0/tokens                 ids as stored (after masking, where masks are static), as wide as the store's
    imported/0/cu_seqlens             uint64 [N + 1] where examples begin and end
    imported/0/second                 uint16 [N] position where segment 1 begins; the length where there is one segment
    imported/0/positions              uint16 predicted positions inside each example
    imported/0/labels                 original ids there, as wide as tokens
    imported/0/cu_predictions         uint64 [N + 1] where the predictions of an example begin and end
    imported/0/next_sentence_labels   int8 [N] 1 random, 0 next, -1 no label
    imported/0/facts.json             what was read, and what was left out

`0` is the number of the phase. Whoever draws from them needs this page and none of the formats they came in.
"""

from __future__ import annotations

from bertwright.examples.store import token_dtype

ENDS = {"cu_seqlens": "lengths", "cu_predictions": "predictions"}
"""The running sums of the artifact, and the column of the parts that each is made of."""


def dtypes(vocabulary_size: int) -> dict[str, str]:
    """The element types of the columns that are flat in parts and artifact alike."""
    ids = token_dtype(vocabulary_size)
    return {"tokens": ids, "second": "<u2", "positions": "<u2", "labels": ids, "next_sentence_labels": "i1"}
