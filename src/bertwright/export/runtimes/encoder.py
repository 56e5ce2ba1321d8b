"""The encoder of a published model, without its head, as transformers reads it: what other programs' converters get."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError


def load_encoder(folder: Path) -> tuple[Any, Any]:
    """The encoder in float32, with as many embeddings as its vocabulary has entries, and the tokenizer.

    A pooler that the folder does not have is zero. Raises `ArtifactError` if transformers cannot load the folder, or
    if it lacks another tensor.
    """
    import torch
    import transformers

    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            encoder, loading = transformers.AutoModel.from_pretrained(
                str(folder), dtype=torch.float32, local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ArtifactError(f"transformers cannot load {folder}: {error}") from error
        missing = sorted(map(str, loading["missing_keys"]))
        if lacking := [name for name in missing if not name.startswith("pooler.")]:
            raise ArtifactError(f"{folder} has no tensor {lacking[0]}. Restore its weights.")
        # transformers draws them at random; zeros are the same every time, and show that nothing was trained.
        for name in missing:
            torch.nn.init.zeros_(encoder.get_parameter(name))
        if encoder.config.vocab_size > len(tokenizer):
            encoder.resize_token_embeddings(len(tokenizer))
    return encoder.eval(), tokenizer


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence its progress bars, and its warnings about heads that are left out."""
    from transformers.utils import logging

    # These settings are global, and the process may be a user's notebook.
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
