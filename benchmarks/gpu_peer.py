"""The peer of benchmarks/gpu.py: the same network in transformers, on the same examples, in its fastest usual setup.

SDPA attention, torch.compile, bfloat16 autocast, fused AdamW, clipping; sequences are padded to the longest length,
with label -100 where nothing is predicted. Batches are made beforehand and are already on the device, so no loader
slows it down.
"""

from collections.abc import Generator
from itertools import cycle, islice, pairwise

import torch
from torch import Tensor

from bertwright.bench.workload import VOCABULARY, Workload, examples_of, loader_of
from bertwright.examples.loader import Loader
from bertwright.model.batch import packed
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.flops import STEP, forward_flops
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining

HELD = 4
"""Number of batches that are trained on in rotation."""


def stock(network: NetworkConfig) -> torch.nn.Module:
    """The transformers network with the same configuration as `network`."""
    from transformers import BertConfig, BertForMaskedLM

    theirs: torch.nn.Module = BertForMaskedLM(BertConfig(**peer_of(network).config))
    return theirs


def same_network(device: torch.device) -> str:
    """Check that both networks have the same loss on the same batch with the same weights, in float32.

    Returns a sentence with both losses; raises `SystemExit` if they differ.
    """
    torch.manual_seed(1)
    ours = PreTrainingModel(BertModelConfig(size="mini", dropout=0.0).resolve(VOCABULARY.size, False), "padded")
    theirs = stock(ours.config)
    theirs.load_state_dict(peer_of(ours.config).names.to_theirs(ours.state_dict()), strict=False)
    ours, theirs = ours.to(device).eval(), theirs.to(device).eval()
    workload = Workload("same", "mini", 128, 16, "doc-sentences", (1, 6))
    batch = loader_of(workload, tokens=40_000).step(0)[0]
    own = score(PreTraining(False), ours, [packed(batch, device)])["mlm_loss"]
    inputs = padded(batch, 128, device)
    with torch.no_grad():
        other = float(theirs(**inputs).loss)
    assert own is not None
    if not abs(own - other) < 1e-4 * other:
        raise SystemExit(f"the networks are not the same: loss {own:.6f} here, {other:.6f} in transformers")
    return f"same weights, same batch: loss {own:.6f} here, {other:.6f} in transformers"


def padded(batch, length: int, device: torch.device) -> dict[str, Tensor]:  # type: ignore[no-untyped-def]
    """One of our batches as the peer's inputs, every sequence padded to `length`."""
    bounds, number = batch.cu_seqlens.tolist(), batch.counts.sequences
    ids, mask = torch.zeros(number, length, dtype=torch.long), torch.zeros(number, length, dtype=torch.long)
    labels = torch.full((number, length), -100)
    flat = torch.full((bounds[-1],), -100)
    flat[torch.from_numpy(batch.prediction_positions)] = torch.from_numpy(batch.labels)
    for row, (first, stop) in enumerate(pairwise(bounds)):
        ids[row, : stop - first] = torch.from_numpy(batch.token_ids[first:stop])
        labels[row, : stop - first] = flat[first:stop]
        mask[row, : stop - first] = 1
    # A full batch has nothing to mask, and SDPA is faster without a mask.
    masked = {} if bool(mask.all()) else {"attention_mask": mask.to(device)}
    return {"input_ids": ids.to(device), "labels": labels.to(device), **masked}


def peer_steps(
    workload: Workload, rows: int, loader: Loader, device: torch.device, compiled: bool
) -> Generator[tuple[int, int, float]]:
    """Train step after step, for ever; yields the sequences, real tokens and operations of each."""
    torch.manual_seed(1)
    network = BertModelConfig(size=workload.size, dropout=0.1, pad_vocab_to_multiple_of=64).resolve(
        VOCABULARY.size, False
    )
    model = stock(network).to(device).train()
    run = torch.compile(model, dynamic=False) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    held = []
    for start in range(0, HELD * rows, rows):
        batch = loader.batch(start, start + rows)
        flops = forward_flops(network, batch.cu_seqlens[1:] - batch.cu_seqlens[:-1], len(batch.labels))
        tokens = sum(len(example.token_ids) for example in examples_of(batch))
        held.append((padded(batch, workload.length, device), tokens, flops))
    batches = cycle(held)
    micro_batches = max(1, workload.batch // rows)
    while True:
        sequences, tokens, flops = 0, 0, 0.0
        for inputs, real, operations in islice(batches, micro_batches):
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = run(**inputs).loss
            (loss / micro_batches).backward()
            sequences, tokens, flops = sequences + rows, tokens + real, flops + operations
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield sequences, tokens, STEP * flops
