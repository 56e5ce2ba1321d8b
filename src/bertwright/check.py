"""Facts for `bertwright check`: what a key means, and what this machine offers."""

from __future__ import annotations

import difflib
import os
import platform
import shutil
from importlib import metadata
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.errors import RecipeError
from bertwright.core.toml import members

_SENTENCEPIECE = 'With vocab.trainer.kind = "sentencepiece".'
_SHARDS = "Left out, their number follows from corpus.shard_bytes."

# Parameters of NVIDIA's, ONNX Runtime's, Google's, TurkuNLP's and the Hungarian recipe's scripts and of SentencePiece:
# the key that holds each here, and how its value is converted where it does not carry over as it is.
ORIGINALS: dict[str, tuple[str, str]] = {
    "max_seq_length": ("train.phases.0.length", ""),
    "max_predictions_per_seq": ("train.phases.0.masking.max_predictions", ""),
    "train_batch_size": (
        "train.phases.0.batch",
        "In NVIDIA's run_pretraining.py it is per GPU and update: the global batch here is that times the GPUs.",
    ),
    "gradient_accumulation_steps": (
        "train.phases.0.micro_batch",
        "micro_batch = train_batch_size / gradient_accumulation_steps; how often is then reckoned from the batch.",
    ),
    "learning_rate": ("train.phases.0.learning_rate", ""),
    "warmup_proportion": ("train.phases.0.warmup", ""),
    "max_steps": ("train.phases.0.steps", ""),
    "num_train_epochs": ("train.phases.0.epochs", "Give it instead of steps: a phase has one length."),
    "masked_lm_prob": ("train.phases.0.masking.rate", "Chosen there when examples are made, here for each phase."),
    "init_checkpoint": ("train.init", "Give a checkpoint or train folder of this program; others cannot be read."),
    "num_steps_per_checkpoint": ("train.checkpoint_every", ""),
    "log_freq": ("train.log_every", ""),
    "seed": ("train.seed", "One number for all ranks, which draw different data by their place in the batch."),
    "dupe_factor": ("examples.passes", ""),
    "do_whole_word_mask": ("train.phases.0.masking.unit", 'unit = "words" is its true, unit = "tokens" its false.'),
    "short_seq_prob": ("examples.short_seq_prob", ""),
    "random_seed": ("examples.seed", "Masks are drawn in training, from train.seed."),
    "do_lower_case": ("vocab.lower_case", "There it strips accents too: set vocab.strip_accents as well."),
    "vocab_file": ("vocab.file", ""),
    "vocab_size": (
        "vocab.size",
        "Entries of the vocabulary; rows of the embedding: model.pad_vocab_to_multiple_of. SentencePiece's vocab_size "
        "is size - unused - 1: 32000 there, with 100 unused entries, is 32101 here.",
    ),
    "model_type": ("vocab.trainer.model", _SENTENCEPIECE),
    "character_coverage": ("vocab.trainer.character_coverage", _SENTENCEPIECE),
    "input_sentence_size": ("vocab.trainer.input_sentence_size", _SENTENCEPIECE),
    "shuffle_input_sentence": ("vocab.trainer.shuffle", f"{_SENTENCEPIECE} Whole documents are drawn, by vocab.seed."),
    "add-chars": ("vocab.trainer.add_characters", f"{_SENTENCEPIECE} On here; vocab.alphabet says which."),
    "SAMPLED_SENTENCE_NUM": ("vocab.sample_bytes", "There a number of sentences, here bytes of whole documents."),
    "bert_config_json": ("model.config", ""),
    "bert_config_file": ("model.config", ""),
    "config_file": ("model.config", ""),
    "n_processes": ("corpus.workers", ""),
    "input_files": ("corpus.source", "A path, a pattern, a folder, or a list of sources."),
    "n_training_shards": ("corpus.shards", _SHARDS),
    "num_shards": ("corpus.shards", _SHARDS),
    "fraction_test_set": (
        "examples.heldout",
        "There a share of the articles for test shards that nothing read; here of the documents that are scored.",
    ),
    "segmentation_method": (
        "corpus.split.command",
        "There nltk; here empty for the built-in rules, or a program and its arguments.",
    ),
    "word-chars": ("corpus.filter.alphabet", "Lower-case letters; the capitals follow."),
}
NOT_OFFERED = {
    "fp16": "training computes in float32 only",
    "amp": "training computes in float32 only",
    "loss_scale": "training computes in float32 only, which needs no loss scaling",
}


def describe_key(model: type[BaseModel], key: str) -> dict[str, Any]:
    """Type, default and meaning of a dotted recipe key, or of the key that holds an original's parameter."""
    name = key.lstrip("-")
    if name in NOT_OFFERED:
        return {"original": key, "meaning": f"not offered: {NOT_OFFERED[name]}"}
    dotted, conversion = ORIGINALS.get(name, (key, ""))
    facts: dict[str, Any] = {"key": dotted} if dotted == key else {"original": key, "key": dotted}
    fields, models = _find(model, dotted, key)
    field = fields[0]
    facts["meaning"] = " ".join((field.description or "").split())
    if conversion:
        facts["conversion"] = conversion
    if models:
        return {**facts, "keys": _keys(models)}
    extra = field.json_schema_extra
    types = dict.fromkeys(str(field.annotation) for field in fields)
    facts["type"] = " | ".join(types).replace("typing.", "").replace("<class '", "").replace("'>", "")
    defaults = dict.fromkeys("required" if field.is_required() else str(field.default) for field in fields)
    facts["default"] = " | ".join(defaults) if len(defaults) > 1 or field.is_required() else field.default
    facts["role"] = extra.get("role", "what") if isinstance(extra, dict) else "what"
    return facts


def _find(model: type[BaseModel], dotted: str, asked: str) -> tuple[list[FieldInfo], list[type[BaseModel]]]:
    """The field of a dotted key, once for each kind of section that has it, and the sections it may hold."""
    models = [model]
    for part in (part for part in dotted.split(".") if not part.isdigit()):
        known = dict.fromkeys(name for m in models for name in m.model_fields)
        if part not in known:
            near = difflib.get_close_matches(part, [*known, *ORIGINALS, *NOT_OFFERED], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}."
            raise RecipeError(f"--explain {asked}: there is no key {part!r}; {hint}")
        fields = [m.model_fields[part] for m in models if part in m.model_fields]
        classes = (c for field in fields for c in members(field.annotation))
        models = [c for c in classes if isinstance(c, type) and issubclass(c, BaseModel)]
    return fields, models


def _keys(models: list[type[BaseModel]]) -> list[str] | dict[str, list[str]]:
    """The keys of a section; where it has kinds, those of each."""
    if len(models) == 1:
        return list(models[0].model_fields)
    return {m.model_fields["kind"].default: list(m.model_fields) for m in models}


def environment() -> dict[str, Any]:
    """Python, processors, memory, disk, and the packages that matter, without importing them."""
    from bertwright.core.tasks import default_workers

    packages = ("torch", "transformers", "tokenizers", "sentencex", "pycld2", "numpy", "safetensors")
    disk = shutil.disk_usage(".")
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": default_workers(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "disk_free_gb": round(disk.free / 1e9, 1),
        "packages": {name: _version(name) for name in packages},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing: pip install bertwright[hf]" if name == "transformers" else f"missing: pip install {name}"
