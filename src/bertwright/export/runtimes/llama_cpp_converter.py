"""llama.cpp's own converter to GGUF, run on the encoder of a published model, by a process of its own.

As it stands, that converter refuses every vocabulary that is not in its list, because BPE needs to know how texts are
split; for WordPiece llama.cpp does not read what the list says. And it expects BPE in a ModernBERT. `python -m
bertwright.export.runtimes.llama_cpp_converter` is the converter with both mended, and with its own arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertwright.core.child_process import why_failed
from bertwright.core.errors import ArtifactError
from bertwright.core.files import write_json
from bertwright.core.subprocess_group import PYTHON, output_of, subprocess_group
from bertwright.export.runtimes.hugging_face import load_encoder, quiet_transformers
from bertwright.export.runtimes.runtime import Published

VARIABLE = "LLAMA_CPP"
"""The environment variable that names the folder of llama.cpp's sources."""
GET = (
    "get it with its sources: pip download --no-deps --no-binary llama-cpp-python llama-cpp-python "
    f"&& tar xf llama_cpp_python-*.tar.gz && export {VARIABLE}=$(echo $PWD/llama_cpp_python-*/)"
)
_POOLING = "1_Pooling"


def sources() -> Path | None:
    """The folder with the converter: in `LLAMA_CPP`, a checkout of llama.cpp or an unpacked llama-cpp-python, else
    where `make` puts it, in llama.cpp of the environment; None if there is none that knows cased vocabularies."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else Path(sys.prefix) / "llama.cpp"
    for home in (folder, folder / "vendor/llama.cpp"):
        vocabulary = home / "gguf-py/gguf/vocab.py"
        if (home / "conversion/bert.py").is_file() and vocabulary.is_file():
            return home if b"strip_accents" in vocabulary.read_bytes() else None
    return None


def missing_sources() -> str:
    """Why there is no converter, and how to get one; "" if there is."""
    if sources():
        return ""
    named = os.environ.get(VARIABLE)
    what = (
        f"{VARIABLE}={named} is no llama.cpp of June 2026 or later" if named else "llama.cpp's converter is not found"
    )
    return f"{what}; {GET}"


def convert(model: Published, out: Path, kind: str) -> None:
    """Write the encoder of a published model as the GGUF file `out`, with weights of the given kind: f32, f16, q8_0.

    Raises `ArtifactError`, with the converter's last line, if it fails.
    """
    with TemporaryDirectory(dir=out.parent, prefix=".gguf-") as staged:
        _stage(model, Path(staged))
        # --outtype and the others are the converter's own.
        arguments = (staged, "--outfile", str(out), "--outtype", kind, "--model-name", model.folder.resolve().name)
        command = (*PYTHON, "-m", __name__, *arguments)
        with subprocess_group(command, 0, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            said = output_of(process)
    if process.returncode:
        reason = why_failed(b"", said, process.returncode)
        raise ArtifactError(f"llama.cpp's converter cannot convert {model.folder}: {reason}")


def _stage(model: Published, folder: Path) -> None:
    """Write what the converter reads: the encoder without its head, in the names that it knows."""
    encoder, tokenizer = load_encoder(model.folder)
    with quiet_transformers():
        encoder.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    if encoder.config.model_type == "modernbert":
        layers = layer_types(encoder.config.to_dict())
        names = {
            "layer_norm_eps": encoder.config.norm_eps,
            "global_attn_every_n_layers": full_attention_every(layers),
            "local_attention": encoder.config.local_attention,
        }
        write_json(folder / "config.json", {**encoder.config.to_dict(), **names})
    if (model.folder / "modules.json").is_file():
        shutil.copy(model.folder / "modules.json", folder)
        for pooling in model.folder.glob("*_Pooling"):
            shutil.copytree(pooling, folder / pooling.name)
    else:
        (folder / _POOLING).mkdir()
        write_json(folder / "modules.json", [{"path": _POOLING, "type": "sentence_transformers.models.Pooling"}])
        write_json(folder / _POOLING / "config.json", {"pooling_mode_mean_tokens": True})
    if (card := model.folder / "README.md").is_file():
        shutil.copy(card, folder)  # for the licence and the language in the file


def layer_types(config: dict[str, Any]) -> list[str]:
    """How each layer of a ModernBERT attends, as config.json says by older or newer versions of transformers."""
    if stated := config.get("layer_types"):
        return list(stated)
    every = int(config.get("global_attn_every_n_layers", 3))
    return ["sliding_attention" if i % every else "full_attention" for i in range(int(config["num_hidden_layers"]))]


def full_attention_every(layers: list[str]) -> int | None:
    """The number n if layers 0, n, 2 n, ... attend to all tokens and the others do not; None if that is not so."""
    full = [i for i, layer in enumerate(layers) if layer == "full_attention"]
    every = full[1] if len(full) > 1 else len(layers)
    return every if full == [*range(0, len(layers), every)] else None


def main() -> None:
    """Run the converter with the arguments of this process."""
    home = sources()
    if home is None:
        sys.exit(missing_sources())
    sys.path[:0] = [str(home), str(home / "gguf-py")]
    import convert_hf_to_gguf
    from conversion.base import TextModel
    from conversion.bert import BertModel, ModernBertModel

    listed, stock = TextModel.get_vocab_base_pre, ModernBertModel.set_vocab

    def words(tokenizer: Any) -> bool:
        return type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece"

    def set_vocab(network: Any) -> None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(network.dir_model, local_files_only=True)
        (BertModel.set_vocab if words(tokenizer) else stock)(network)

    TextModel.get_vocab_base_pre = lambda network, tokenizer: (
        "default" if words(tokenizer) else listed(network, tokenizer)
    )
    ModernBertModel.set_vocab = set_vocab
    convert_hf_to_gguf.main()


if __name__ == "__main__":
    main()
