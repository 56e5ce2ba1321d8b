"""Sequence classifiers in stock transformers' words: what all families say alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.model.choice import Labels


def classes(labels: Labels) -> Mapping[str, Any]:
    """The keys of config.json that name classes and say how their logits are to be read."""
    problem = "regression" if len(labels) == 1 else "single_label_classification"
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        "problem_type": problem,
    }
