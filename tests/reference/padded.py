"""A packed batch as other programs take it: a rectangle with a mask."""

import torch
from torch import Tensor

from bertwright.model.batch import PackedBatch


def padded_inputs(batch: PackedBatch, segments: bool = True) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Their [B, S] inputs; labels with -100 where nothing is predicted; and where our T tokens lie in them."""
    lengths = batch.cu_seqlens.diff()
    mask = torch.arange(batch.max_row) < lengths[:, None]
    spread = {"input_ids": batch.token_ids} | ({"token_type_ids": batch.segment_ids} if segments else {})
    inputs = {name: torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, x) for name, x in spread.items()}
    labels_T = torch.full_like(batch.token_ids, -100).index_copy(0, batch.prediction_positions, batch.labels)
    labels = torch.full(mask.shape, -100).masked_scatter(mask, labels_T)
    return inputs | {"attention_mask": mask.long()}, labels, mask
