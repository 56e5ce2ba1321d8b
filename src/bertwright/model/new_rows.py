"""Token embeddings for a vocabulary, made from those of a network that was trained with another one.

Entries that both vocabularies have keep their rows. A new entry gets one of these:

- the mean of the rows of the older pieces that its text is split into (Gee et al. 2022, "Fast Vocabulary Transfer").
  Means of several rows are shorter than rows are. Lengthened to theirs, they gave too much probability to entries that
  the network knows little of: the loss was higher before training and after it (docs/decisions/0078);
- the mean of that row and one from the text: entries with the same neighbours have similar vectors there
  (`train.setup.initial_weights`), and the entries of both vocabularies show which direction of that space is which
  direction of the older one, as in WECHSEL (Minixhofer et al. 2022) and FOCUS (Dobler and de Melo 2023), which use
  vectors of other programs. The map is the best rotation (orthogonal Procrustes), which was better than a regression;
- where nothing is known of it, the mean of all older rows and noise with their standard deviation.

Biases of the decoder are made alike. Names carry shapes: V entries of the new vocabulary, U of the older one, N pieces,
S entries of both, H hidden.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertwright.core.errors import RecipeError

if TYPE_CHECKING:  # imported only where the correspondence is found
    from bertwright.vocab.correspondence import Correspondence

FEWEST = 10
"""Entries of both vocabularies in the text without which the two spaces cannot be compared."""


def composed(older_U: Tensor, found: Correspondence, seed: int) -> Tensor:
    """Return a row for each entry [V, H], or for a bias a number [V], from those of the older vocabulary, [U, H] or
    [U]."""
    older_UH = older_U if older_U.dim() == 2 else older_U[:, None]
    same_V, counts_V, pieces_N = map(torch.from_numpy, (found.same_V, found.counts_V, found.pieces_N))
    entry_N = torch.repeat_interleave(torch.arange(len(counts_V)), counts_V)
    rows_VH = older_UH.mean(0).repeat(len(same_V), 1)
    rows_VH += _noise(rows_VH, seed) * older_UH.std(0)
    means_VH = torch.zeros_like(rows_VH).index_add_(0, entry_N, older_UH[pieces_N]) / counts_V[:, None].clamp(min=1)
    rows_VH = torch.where(counts_V[:, None] > 0, means_VH, rows_VH)
    rows_VH = torch.where(same_V[:, None] >= 0, older_UH[same_V.clamp(min=0)], rows_VH)
    return rows_VH if older_U.dim() == 2 else rows_VH[:, 0]


def projected(text_VH: Tensor, rows_VH: Tensor, shared_V: Tensor) -> Tensor:
    """Return rows [V, H]: means of the given rows [V, H] and of vectors of the text [V, H], mapped to their space.
    `shared_V` [V] says which rows show how the two spaces correspond. Entries whose vector is 0, because they do not
    occur, keep their rows.

    The map is the rotation, with a shift and a factor, after which the shared rows are nearest to each other. Raises
    `RecipeError` if fewer than 10 of them occur.
    """
    occurs_V = text_VH.any(1)
    fitted_V = occurs_V & shared_V
    if (count := int(fitted_V.sum())) < FEWEST:
        raise RecipeError(
            f"train.init_embeddings text maps the text to the older network by the entries that both have, but only "
            f"{count} of them occur in the text; set train.init_embeddings=pieces"
        )
    x_SH, y_SH = text_VH[fitted_V].double(), rows_VH[fitted_V].double()
    x_H, y_H = x_SH.mean(0), y_SH.mean(0)
    left_HH, _, right_HH = torch.linalg.svd((x_SH - x_H).T @ (y_SH - y_H))
    factor = (y_SH - y_H).norm() / (x_SH - x_H).norm()
    mapped_VH = factor * (text_VH.double() - x_H) @ (left_HH @ right_HH) + y_H
    return torch.where(occurs_V[:, None], (mapped_VH.float() + rows_VH) / 2, rows_VH)


def _noise(like: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(like.shape, generator=generator)


def to_text(marks_V: NDArray[np.bool_]) -> str:
    """Return which entries are marked [V] as a text, for a record."""
    return f"{len(marks_V)}:{base64.b64encode(zlib.compress(np.packbits(marks_V).tobytes(), 9)).decode()}"


def from_text(text: str) -> NDArray[np.bool_]:
    """Return what `to_text` was given [V]. Raises `ValueError` if the text is none of its."""
    count, _, data = text.partition(":")
    packed = np.frombuffer(zlib.decompress(base64.b64decode(data, validate=True), bufsize=int(count)), np.uint8)
    return np.unpackbits(packed, count=int(count)).astype(np.bool_)
