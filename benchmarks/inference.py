"""Processor time of a text of 128 tokens in a BERT of base size, by torch, ONNX Runtime and OpenVINO, on one thread.

    python benchmarks/inference.py [--rounds 15] [--layers 12] [--profile]

Weights are random, which does not change the time. The sides take turns in blocks of two passes; the medians are
printed, and the ratio of transformers' to each. With --profile also the share of each of ONNX Runtime's operators.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino
import torch
import transformers

from bertwright.export.onnx.graph import Precision, save
from bertwright.export.onnx.model import onnx_model
from bertwright.model.batch import packed_sequences
from bertwright.model.bert.network import BertConfig
from bertwright.model.model import HeadlessModel

LENGTH, PASSES = 128, 2
FILES: dict[str, Precision] = {"float32": "float32", "float16": "float16", "int8": "int8"}
Side = Callable[[], Any]


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--profile", action="store_true", help="print the share of each operator")
    given = parser.parse_args(arguments or None)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=30_522, hidden_size=768, num_hidden_layers=given.layers, num_attention_heads=12,
        intermediate_size=3072, next_sentence=False,
    )  # fmt: skip
    ids = np.random.default_rng(0).integers(1000, 30_000, (1, LENGTH))
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    network = HeadlessModel(config).eval()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        sides = {**torch_sides(network, inputs), **file_sides(network, inputs, Path(folder))}
        found = medians(sides, given.rounds)
        for name, seconds in found.items():
            print(f"{name:32} {seconds * 1e3:7.1f} ms  {found['transformers'] / seconds:5.2f}")
        for name in FILES if given.profile else ():
            print(f"\n{name}: {shares(Path(folder) / f'{name}.onnx', inputs)}")


def torch_sides(network: HeadlessModel, inputs: dict[str, Any]) -> dict[str, Side]:
    """transformers (attention by sdpa) and this package, both eager."""
    config = network.config
    theirs = transformers.BertModel(
        transformers.BertConfig(num_hidden_layers=config.num_hidden_layers), add_pooling_layer=False
    ).eval()
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    batch = packed_sequences([(inputs["input_ids"][0].tolist(), [])], 103)
    return {"transformers": lambda: theirs(**tensors), "bertwright": lambda: network(batch)}


def file_sides(network: HeadlessModel, inputs: dict[str, Any], folder: Path) -> dict[str, Side]:
    """ONNX Runtime in each precision, and OpenVINO."""
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    sides: dict[str, Side] = {}
    for name, precision in FILES.items():
        save(onnx_model(network.config, tensors, precision), folder / f"{name}.onnx")
        session = opened(folder / f"{name}.onnx")
        sides[f"ONNX Runtime, {name}"] = lambda session=session: session.run(None, inputs)
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(folder / "float32.onnx", "CPU", settings)
    sides["OpenVINO, float32"] = lambda: compiled(inputs)
    return sides


def opened(path: Path, profile: str = "") -> Any:
    """A session of one thread; with `profile` it writes its times to a file of that beginning."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_profiling, options.profile_file_prefix = bool(profile), profile
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def medians(sides: dict[str, Side], rounds: int) -> dict[str, float]:
    """Processor seconds of a pass of each side; they take turns, and a first pass of each block is not counted."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            side()
            began = time.process_time()
            for _ in range(PASSES):
                side()
            found[name].append((time.process_time() - began) / PASSES)
    return {name: statistics.median(times) for name, times in found.items()}


def shares(path: Path, inputs: dict[str, Any], passes: int = 10) -> str:
    """The operators by their share of the time, the largest first."""
    session = opened(path, str(path))
    for _ in range(passes):
        session.run(None, inputs)
    events = json.loads(Path(session.end_profiling()).read_text())
    spent: dict[str, int] = {}
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            kind = event["args"]["op_name"]
            spent[kind] = spent.get(kind, 0) + event["dur"]
    total, largest = sum(spent.values()), sorted(spent, key=spent.__getitem__, reverse=True)
    parts = [f"{kind} {spent[kind] / total:.1%}" for kind in largest if spent[kind] > 0.005 * total]
    return f"{total / passes / 1e3:.1f} ms: {', '.join(parts)}"


if __name__ == "__main__":
    main(*sys.argv[1:])
