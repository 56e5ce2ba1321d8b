"""Compares networks read from TensorFlow's checkpoints with what the programs that wrote them compute."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from bertwright.model.batch import packed_sequences
from bertwright.model.importers.tensorflow import TensorFlowWeights
from bertwright.model.interop.stock import load_headless, load_stock
from bertwright.model.pretrained_config import read_pretrained

PREDICTED = 4
"""The id of the tokens at which `outputs.npz` has predictions."""
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def with_vocabulary(folder: Path) -> Path:
    """Put a vocabulary beside a checkpoint, as published ones have it."""
    size = json.loads((folder / "bert_config.json").read_text())["vocab_size"]
    entries = [*SPECIALS, *(f"word{number}" for number in range(size - len(SPECIALS)))]
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    return folder


def sentences(inputs: Any) -> list[tuple[list[int], list[int]]]:
    """The ids of the two segments of each sentence in `inputs.npz`, without padding."""
    rows = zip(inputs["ids"], inputs["mask"].sum(1), inputs["segments"], strict=True)
    return [(ids[:n][kind[:n] == 0].tolist(), ids[:n][kind[:n] == 1].tolist()) for ids, n, kind in rows]


@torch.no_grad()
def compare_ours(prefix: Path) -> dict[str, float]:
    """The largest difference between each output of our network and the program's."""
    inputs, outputs = np.load(prefix.parent.parent / "inputs.npz"), np.load(prefix.parent / "outputs.npz")
    batch = packed_sequences(sentences(inputs), PREDICTED)
    found: dict[str, NDArray[Any]] = {}
    if "masked" in outputs:
        model = load_stock(prefix).eval()
        logits, following = model(batch)
        found["masked"] = logits.log_softmax(1).numpy()
        found["next"] = following.log_softmax(1).numpy()
        encoder = model.encoder
    else:
        encoder = load_headless(read_pretrained(prefix)).eval().encoder
    hidden = encoder(batch)
    found["hidden"] = hidden.numpy()
    if "pooled" in outputs and encoder.pooler is not None:
        found["pooled"] = encoder.pool(hidden[batch.cu_seqlens[:-1].long()]).numpy()
    expected = {**outputs, "hidden": outputs["hidden"][inputs["mask"] == 1]}
    return {name: float(np.abs(found[name] - expected[name]).max()) for name in found}


@torch.no_grad()
def compare_transformers(prefix: Path) -> dict[str, float]:
    """The same with transformers' network of the tensors that are read."""
    inputs, outputs = np.load(prefix.parent.parent / "inputs.npz"), np.load(prefix.parent / "outputs.npz")
    config = transformers.BertConfig(**json.loads((prefix.parent / "bert_config.json").read_text()))
    kind = transformers.BertForPreTraining if "masked" in outputs else transformers.BertModel
    network = kind(config).eval()
    weights = TensorFlowWeights.find(prefix)
    assert weights is not None
    start = "" if "masked" in outputs else "bert."
    tensors = {name.removeprefix(start): tensor for name, tensor in weights.read().items()}
    missing, unexpected = network.load_state_dict(tensors, strict=False)
    assert set(missing) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"} and not unexpected
    network.tie_weights()
    ids, mask, segments = (torch.from_numpy(inputs[name]).long() for name in ("ids", "mask", "segments"))
    given = network(input_ids=ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True)
    found = {"hidden": given.hidden_states[-1]}
    if "masked" not in outputs:
        found["pooled"] = given.pooler_output
    else:
        found["masked"] = given.prediction_logits[ids == PREDICTED].log_softmax(1)
        found["next"] = given.seq_relationship_logits.log_softmax(1)
    return {
        name: float(np.abs((value.numpy() - outputs[name])[inputs["mask"] == 1 if name == "hidden" else ...]).max())
        for name, value in found.items()
    }
