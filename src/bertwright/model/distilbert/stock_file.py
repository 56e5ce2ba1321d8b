"""Reads a config.json of Hugging Face's DistilBERT. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.model.config_file import Allowed, own_values, read_config_file
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.section_helpers import (
    validated,
)

SAME_NETWORK: Allowed = {
    "model_type": ("distilbert",),
    # True means fixed sinusoidal positions; the published networks have trained ones.
    "sinusoidal_pos_embds": (False,),
    "tie_weights_": (True,),
    "qa_dropout": None,
    "seq_classif_dropout": None,
}
"""Keys of other programs' files, in addition to those of every family, with the values that mean this network."""


def read_distilbert_config(path: Path) -> dict[str, Any]:
    """Return the `DistilBertConfig` values of a configuration file by Hugging Face or this project.

    Raises `RecipeError` as `own_values` does, and if the values describe no valid network.
    """
    title = DistilBertConfig.title
    own = own_values(path, read_config_file(path), DistilBertConfig.model_fields, SAME_NETWORK, title)
    validated(DistilBertConfig, own, path, title)
    return own
