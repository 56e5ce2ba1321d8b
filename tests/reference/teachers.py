"""A folder with a network as transformers writes it, for tests that need a teacher."""

import json
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import save_file

from bertwright.model.interop.peer import peer_of
from bertwright.model.model import Model

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_stock(folder: Path, model: Model, entries: Sequence[str] = ()) -> Path:
    """Write the network with its `entries`, by default as many as it has rows."""
    rows = entries or [*SPECIALS, *(f"word{number}" for number in range(model.config.vocab_size - len(SPECIALS)))]
    peer = peer_of(model.config, len(rows))
    folder.mkdir(parents=True)
    ids = dict.fromkeys(peer.special_ids, 0)  # transformers takes numbers beyond a small vocabulary where none is said
    (folder / "config.json").write_text(json.dumps({**peer.config, **ids}))
    tensors = peer.names.to_theirs(model.float().state_dict(), len(rows))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in rows), encoding="utf-8")
    return folder
