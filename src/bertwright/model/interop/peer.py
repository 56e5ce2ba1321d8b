"""The stock transformers network that a network of this project is exported to, for each family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig, without_peer
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.interop import bert, distilbert, modern
from bertwright.model.interop.names import TASKS, Names, of_encoder, of_task
from bertwright.model.modern.network import ModernConfig

_PAD = {"pad_token_id": "pad_token"}
# For ids that a ModernBERT's file does not state, transformers assumes those of the published vocabulary.
_MODERN_IDS = {
    **_PAD,
    "cls_token_id": "cls_token",
    "bos_token_id": "cls_token",
    "sep_token_id": "sep_token",
    "eos_token_id": "sep_token",
}


@dataclass(frozen=True)
class Peer:
    """The description of a network in stock transformers."""

    config: Mapping[str, Any]
    """Its config.json, without the ids of special tokens."""
    names: Names
    special_ids: Mapping[str, str]
    """Keys of config.json for ids of special tokens, and the key of each token in a tokenizer's configuration."""
    segments: bool
    """Whether it accepts `token_type_ids`."""
    next_sentence: bool = False
    """Whether it has a next-sentence head beside the one for masked tokens."""

    @property
    def architecture(self) -> str:
        """The name of the transformers class with all its heads; config.json may name one with fewer."""
        return "BertForPreTraining" if self.next_sentence else str(self.config["architectures"][0])


def peer_of(config: NetworkConfig, vocab_size: int | None = None) -> Peer:
    """Return the peer of a network, with `vocab_size` rows if padding is removed; `RecipeError` if it has none."""
    if missing := without_peer(config):
        raise RecipeError(f"{missing} Stop before the export: --until evaluate.")
    match config:
        case BertConfig():
            both = config.next_sentence and not config.labels
            return Peer(bert.hf_config(config, vocab_size), _names(config, bert), _PAD, True, next_sentence=both)
        case ModernConfig():
            return Peer(modern.hf_config(config, vocab_size), _names(config, modern), _MODERN_IDS, segments=False)
        case DistilBertConfig():
            return Peer(distilbert.hf_config(config, vocab_size), _names(config, distilbert), _PAD, segments=False)
        case _:
            raise AssertionError(f"PEERS names {config.family}, which has no case here")


def names_of(config: NetworkConfig, task: str) -> Names:
    """Return the names of a family's tensors with the heads that a file may have, given the `task` by which
    transformers' class is named; "" for pre-training."""
    family = {"bert": bert, "modern": modern, "distilbert": distilbert}[config.family]
    names = of_task(family.CLASSIFIER, task) if task else family.NAMES
    return replace(family.NAMES, what=f"a {config.title}", pairs=names.pairs)


def _names(config: NetworkConfig, family: ModuleType) -> Names:
    names: Names = family.NAMES
    if config.gives_vectors:
        return of_encoder(names)
    if not config.labels:
        return names
    return of_task(family.CLASSIFIER, TASKS[config.head])
