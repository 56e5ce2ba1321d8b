"""A folder that every program for models of transformers reads, of a network whose weights are in other files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from bertwright.core.files import MAX_JSON, write_json
from bertwright.model.config_file import KINDS, read_config_file
from bertwright.model.importers.members import find_weights
from bertwright.model.importers.safetensors_files import WEIGHTS, SafetensorsWeights
from bertwright.model.pretrained_config import folder_of, read_pretrained

_BESIDE = (".json", ".txt", ".model")
"""Ends of the names of the files with configurations and tokenizers."""


@contextmanager
def as_published(path: Path) -> Iterator[Path]:
    """Yield the folder `path` itself if its weights are in safetensors, or are missing, which programs say themselves;
    else a temporary folder with the same network: weights in safetensors, configuration, tokenizer.

    Raises `RecipeError` if something is missing beside the weights, `ArtifactError` if they are damaged.
    """
    weights = find_weights(path)
    if weights is None or (path.is_dir() and isinstance(weights, SafetensorsWeights)):
        yield path
        return
    folder = folder_of(path)
    config = read_config_file(folder / "config.json") if (folder / "config.json").is_file() else None
    # A network of no family here needs nothing of this project: other programs may know it.
    if config is None or config.get("model_type") in KINDS:
        given = read_pretrained(path)
        kind = next(kind for kind, family in KINDS.items() if family == given.network.family)
        head = "BertModel" if given.lacks_head else "BertForMaskedLM"
        # NVIDIA's and Google's configurations are of BERTs, and name neither the kind nor the padded rows.
        settings = {"architectures": [head], "model_type": kind, **given.settings}
        config = {**settings, "vocab_size": given.network.vocab_size}
    from bertwright.model.saved import write_safetensors

    with TemporaryDirectory(prefix="bertwright-model-") as made:
        for file in folder.iterdir():
            if file.suffix in _BESIDE and not file.name.endswith(".index.json") and file.stat().st_size < MAX_JSON:
                copyfile(file, Path(made) / file.name)
        write_json(Path(made) / "config.json", config)
        # The format has no tensors that share their elements, as tied ones do.
        tensors = {name: tensor.clone().contiguous() for name, tensor in weights.read().items()}
        write_safetensors(Path(made) / WEIGHTS, tensors, {"format": "pt"})
        yield Path(made)
