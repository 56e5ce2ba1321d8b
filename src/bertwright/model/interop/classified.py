"""Configuration of sequence classifiers in stock transformers, as far as it is the same for all families."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.model.section_helpers import Labels


def classes(labels: Labels) -> Mapping[str, Any]:
    """Return the keys of config.json that name the classes and say how to interpret their logits."""
    problem = "regression" if len(labels) == 1 else "single_label_classification"
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        "problem_type": problem,
    }
