"""A small pre-trained model of each family in the format of transformers, with a vocabulary of real words."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.reference.teachers import SPECIALS, write_stock

from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.model.pretraining import PreTrainingModel

WORDS = ("the", "cat", "dog", "sat", "ran", "##s", "##ting", "on", "mat", "house", "a", ".")
ENTRIES = (*SPECIALS, *WORDS, *(f"word{number}" for number in range(43)))

Folder = Callable[[str], Path]


def config_of(family: str, next_sentence: bool = False) -> NetworkConfig:
    rows, shared = len(ENTRIES), {"max_position_embeddings": 24, "initializer_range": 0.3}
    if family == "bert":
        return BertConfig(
            vocab_size=rows,
            hidden_size=24,
            num_hidden_layers=3,
            num_attention_heads=3,
            intermediate_size=40,
            next_sentence=next_sentence,
            **shared,
        )
    if family == "distilbert":
        return DistilBertConfig(vocab_size=rows, dim=24, n_layers=3, n_heads=3, hidden_dim=40, **shared)
    return ModernConfig(
        vocab_size=rows,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=40,
        local_attention=4,
        **shared,
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """`folder("bert")`: the folder of a model of that family."""
    made: dict[str, Path] = {}

    def of(family: str) -> Path:
        if family not in made:
            torch.manual_seed(3)
            path = tmp_path_factory.mktemp("exams") / family
            made[family] = write_stock(path, PreTrainingModel(config_of(family)), ENTRIES)
            (path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
        return made[family]

    return of
