"""The files of a published model, in the format of Hugging Face's `transformers`: weights, configuration, tokenizer,
and what programs that compute a vector of a text read besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.files import make_folder, write_atomic, write_json
from bertwright.model.interop.peer import Peer, peer_of
from bertwright.model.model import Model
from bertwright.model.saved import write_safetensors
from bertwright.vocab.entries import CLS, MASK, PAD, SEP, UNK, TextSettings
from bertwright.vocab.load import read_vocabulary

REFUSED = "Load this tokenizer with AutoTokenizer. BertTokenizer would ignore the normalization in tokenizer.json."
"""What `tokenizer_config.json` has in place of settings that only the classes with a normalization of their own read.

BertTokenizer of transformers 5 has no NFC, so that 1 in 10 words of Bengali became [UNK], and the slow tokenizers (of
transformers 4, and BertTokenizerLegacy) have other tables of punctuation and control characters, and a final sigma.
They accept no value of this kind, so they raise an error where they would have given other ids."""
SPECIAL_TOKENS = {"unk_token": UNK, "sep_token": SEP, "pad_token": PAD, "cls_token": CLS, "mask_token": MASK}


def write_hf_folder(
    hf: Path, model: Model, vocab: Artifact, prompts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Write everything but the card to `hf`; rows that only pad the embedding are dropped. `prompts` are what is read
    before texts of a kind, by which programs that compute vectors name it.

    Returns the architecture's name, its vocabulary size and its number of parameters.
    """
    entries = read_vocabulary(vocab.file("vocab.txt"))
    peer = peer_of(model.config, len(entries))
    theirs = peer.names.to_theirs(model.state_dict(), len(entries))
    write_network(hf, stock_config(peer, entries), theirs)
    files = {name: vocab.file(name).read_bytes() for name in ("vocab.txt", "tokenizer.json")}
    positions = model.config.max_position_embeddings
    settings = TextSettings.recorded(vocab.counts)
    write_tokenizer(hf, files, tokenizer_config(settings, positions, peer.segments))
    if not model.config.labels:
        write_pooling(hf, model.config.hidden_size, positions, model.config.gives_vectors, prompts)
    return {
        "architecture": peer.architecture,
        "vocab_size": len(entries),
        "parameters": sum(tensor.numel() for tensor in theirs.values()),
    }


def stock_config(peer: Peer, entries: Sequence[str]) -> dict[str, Any]:
    """The content of config.json: the peer's network, and the ids that special tokens have among `entries`."""
    # transformers defaults to 0 for the padding token, but the entry may have another id.
    ids = {key: entries.index(SPECIAL_TOKENS[token]) for key, token in peer.special_ids.items()}
    return {**peer.config, **ids}


def write_network(hf: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write config.json and model.safetensors."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_json(hf / "config.json", config)
    write_safetensors(hf / "model.safetensors", contiguous, {"format": "pt"})  # transformers 4 requires the format


def write_tokenizer(hf: Path, files: Mapping[str, bytes], config: Mapping[str, Any]) -> None:
    """Write the `files` of the vocabulary, by name, and what transformers needs beside them."""
    for name, content in files.items():
        write_atomic(hf / name, content)
    write_json(hf / "tokenizer_config.json", config)
    write_json(hf / "special_tokens_map.json", SPECIAL_TOKENS)


def tokenizer_config(settings: TextSettings, positions: int, segments: bool) -> dict[str, Any]:
    """The tokenizer configuration, naming the class that uses tokenizer.json unchanged."""
    return {
        # BertTokenizer would build its own normalization and lose the corpus's NFC.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions,
        # A network without segments rejects token_type_ids.
        "model_input_names": ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"],
        # For programs that read only this file; tokenizer.json has the same settings.
        "do_lower_case": settings.lower_case,
        "strip_accents": settings.strip_accents,
        "tokenize_chinese_chars": REFUSED,  # of these classes, read by BertTokenizer of transformers 5
        "never_split": True,  # and by the slow ones, which expect a list
        **SPECIAL_TOKENS,
    }


def write_pooling(
    hf: Path, hidden: int, positions: int, unit: bool = False, prompts: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Say that the vector of a text is the mean of its tokens' last hidden states, [CLS] and [SEP] included; if `unit`,
    divided by its length.

    Without these files sentence-transformers takes the mean, too, but text-embeddings-inference and vLLM take the state
    of [CLS]. The keys and classes are those of sentence-transformers 2 to 5: version 6 also reads them, but
    text-embeddings-inference and most others read no later ones. A classifier has no such files, because programs that
    find them drop its head.
    """
    kinds = {"": "Transformer", "1_Pooling": "Pooling", **({"2_Normalize": "Normalize"} if unit else {})}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    write_json(hf / "modules.json", modules)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    pooling = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes}
    write_json(make_folder(hf / "1_Pooling") / "config.json", {"word_embedding_dimension": hidden, **pooling})
    # `do_lower_case` would lower-case in addition to the tokenizer, before it composes accents.
    write_json(hf / "sentence_bert_config.json", {"max_seq_length": positions, "do_lower_case": False})
    write_json(
        hf / "config_sentence_transformers.json",
        {"prompts": dict(prompts), "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
