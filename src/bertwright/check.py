"""Facts for `bertwright check`: what a key means, and what this machine offers."""

from __future__ import annotations

import difflib
import os
import platform
import shutil
from importlib import metadata
from typing import Any

from pydantic import BaseModel

from bertwright.core.errors import RecipeError
from bertwright.core.tasks import default_workers
from bertwright.core.toml import members

# Parameters of NVIDIA's, ONNX Runtime's, Google's and the Hungarian recipe's scripts, and the keys that hold them here.
ORIGINALS = {
    "max_seq_length": "train.phases.0.length",
    "max_predictions_per_seq": "train.phases.0.max_predictions",
    "train_batch_size": "train.phases.0.batch",
    "gradient_accumulation_steps": "train.phases.0.micro_batch",
    "learning_rate": "train.phases.0.learning_rate",
    "warmup_proportion": "train.phases.0.warmup",
    "max_steps": "train.phases.0.steps",
    "masked_lm_prob": "train.phases.0.mask_rate",
    "init_checkpoint": "train.init",
    "num_steps_per_checkpoint": "train.checkpoint_every",
    "log_freq": "train.log_every",
    "dupe_factor": "examples.passes",
    "short_seq_prob": "examples.short_seq_prob",
    "random_seed": "examples.seed",
    "do_lower_case": "vocab.lower_case",
    "vocab_file": "vocab.file",
    "vocab_size": "vocab.size",
    "bert_config_json": "model.config",
    "config_file": "model.config",
    "n_processes": "corpus.workers",
}


def describe_key(model: type[BaseModel], key: str) -> dict[str, Any]:
    """Type, default and meaning of a dotted recipe key, or of the key that holds an original's parameter."""
    dotted = ORIGINALS.get(key.lstrip("-"), key)
    facts: dict[str, Any] = {"key": dotted} if dotted == key else {"original": key, "key": dotted}
    choices: list[Any] = [model]
    for part in dotted.split("."):
        if part.isdigit():
            continue
        known = {name: field for c in choices if _is_model(c) for name, field in c.model_fields.items()}
        if part not in known:
            near = difflib.get_close_matches(part, [*known, *ORIGINALS], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}."
            raise RecipeError(f"--explain {key}: there is no key {part!r}; {hint}")
        field = known[part]
        choices = members(field.annotation)
    facts["meaning"] = " ".join((field.description or "").split())
    if any(_is_model(c) for c in choices):
        facts["keys"] = [name for c in choices if _is_model(c) for name in c.model_fields]
        return facts
    extra = field.json_schema_extra
    facts["type"] = str(field.annotation).replace("typing.", "").replace("<class '", "").replace("'>", "")
    facts["default"] = "required" if field.is_required() else field.default
    facts["role"] = extra.get("role", "what") if isinstance(extra, dict) else "what"
    return facts


def environment() -> dict[str, Any]:
    """Python, processors, memory, disk, and the packages that matter, without importing them."""
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


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
