"""Hugging Face's transformers, in float32: what every other runtime is compared with, and what converters start from.

Names carry shapes: T tokens, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.core.errors import ArtifactError
from bertwright.export.runtimes.runtime import Head, Output, Outputs, Published, Reader, Runtime
from bertwright.model.importers.safetensors_files import weight_files

if TYPE_CHECKING:
    from torch import Tensor


class Transformers(Runtime):
    """`Runtime` of transformers, from version 4.57 on."""

    name = title = package = "transformers"
    install = "pip install 'bertwright[hf]'"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`: only weights in safetensors are read, and no code of a folder is run."""
        import transformers

        if unreadable := without_weights(model.folder):
            return unreadable
        if not hasattr(transformers, model.architecture):
            ours = f"transformers {self.version()} has no class {model.architecture}"
            return f"{ours}; it needs code that comes with the model, which is never run" if _has_code(model) else ours
        return ""

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """Load the network in float32. Raises `ArtifactError` if transformers finds no weights for a part of it."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield _Reader(model)
        finally:
            torch.set_num_threads(before)


def without_weights(folder: Path) -> str:
    """Why the weights of a folder are not read, if they are not in safetensors; else ""."""
    if weight_files(folder):
        return ""
    others = sorted(path.name for end in ("bin", "h5", "msgpack", "pt") for path in folder.glob(f"*.{end}"))
    if not others:
        return f"{folder} has no weights: no model.safetensors, and no index of several files"
    return (
        f"its weights are in {others[0]}, which is never read, because a pickle can run any program; load the model "
        "with transformers and save it with save_pretrained, which writes model.safetensors"
    )


def _has_code(model: Published) -> bool:
    return "auto_map" in model.config


class _Reader:
    """See `Reader`."""

    def __init__(self, model: Published) -> None:
        from transformers import AutoTokenizer

        self.head: Head = model.head
        self.network = load(model)
        # Not the network's output of all layers: the last of them is before the final norm in some versions.
        self.network.base_model.register_forward_hook(self._keep)
        self.tokenizer = AutoTokenizer.from_pretrained(str(model.folder), local_files_only=True)
        self.positions = model.positions
        self.hidden_TH: Any = None

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`."""
        found: list[int] = self.tokenizer(text, truncation=True, max_length=self.positions)["input_ids"]
        return found

    def run(self, text: str) -> Outputs:
        """As `Reader.run`; "logits" unless the network has no head."""
        import torch

        ids_1T = torch.tensor([self.ids(text)])
        inputs_1T = ids_1T[None] if self.head == "choice" else ids_1T
        with torch.inference_mode():
            output = self.network(input_ids=inputs_1T, attention_mask=torch.ones_like(inputs_1T))
        outputs: dict[Output, Tensor] = {"hidden": self.hidden_TH, "vector": self.hidden_TH.mean(0)}
        if self.head != "encoder":
            outputs["logits"] = self._logits(output, ids_1T[0], text)
        return {name: value.float().numpy() for name, value in outputs.items()}

    def _logits(self, output: Any, ids_T: Tensor, text: str) -> Tensor:
        import torch

        if self.head == "span":
            return torch.stack([output.start_logits[0], output.end_logits[0]], dim=1)
        logits_1: Tensor = output.prediction_logits if "prediction_logits" in output else output.logits
        if self.head != "masked":
            return logits_1[0]
        places = (ids_T == self.tokenizer.mask_token_id).nonzero()[:, 0]
        if len(places) != 1:
            raise ArtifactError(f"{text!r} has {len(places)} masks in the tokens that are read; write exactly one")
        return logits_1[0, places[0]]

    def _keep(self, module: Any, inputs: Any, output: Any) -> None:
        self.hidden_TH = output[0][0]


def load(model: Published) -> Any:
    """The network of a published folder as its class of transformers, in float32, ready to answer.

    Raises `ArtifactError` if weights are missing: transformers would draw them at random, with only a warning.
    """
    import transformers

    with quiet_transformers():
        config = transformers.AutoConfig.from_pretrained(str(model.folder), local_files_only=True)
        if hasattr(config, "reference_compile"):  # of ModernBERT, up to version 4: it would compile where Triton is
            config.reference_compile = False
        network, loading = getattr(transformers, model.architecture).from_pretrained(
            str(model.folder), config=config, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    # The hidden states of an encoder do not depend on its pooler, which files of pre-trained networks may lack.
    missing = sorted(name for name in map(str, loading["missing_keys"]) if not name.startswith("pooler."))
    if missing or loading["mismatched_keys"]:
        names = ", ".join((missing or sorted(str(each[0]) for each in loading["mismatched_keys"]))[:3])
        raise ArtifactError(f"{model.folder} has no weights for {names} of its {model.architecture}; save it again")
    return network.float().eval()


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
                str(folder), dtype=torch.float32, local_files_only=True, use_safetensors=True, output_loading_info=True
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
