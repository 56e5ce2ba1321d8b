"""The peer of benchmarks/gpu.py: the same network in transformers, on the same examples, in its fastest usual setup.

SDPA attention, torch.compile, bfloat16 autocast, fused AdamW, clipping; sequences are padded to the longest length,
with label -100 where nothing is predicted. Batches are made beforehand and are already on the device, so no loader
slows it down. A ModernBERT uses FlashAttention where its package is installed, and is then not compiled.
"""

from itertools import cycle, islice, pairwise

import torch
from torch import Tensor

from bertwright.bench.workload import VOCABULARY, examples_of
from bertwright.examples.batch import MicroBatch
from bertwright.model.batch import packed
from bertwright.model.config import NetworkConfig
from bertwright.model.flops import STEP, forward_flops
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from gpu_cases import Case, has_flash
from gpu_sides import Steps

HELD = 4
"""Number of batches that are trained on in rotation."""


def stock(network: NetworkConfig, attention: str = "sdpa") -> torch.nn.Module:
    """The transformers network with the same configuration as `network` and a masked-token head."""
    import transformers

    peer = peer_of(network)
    config = transformers.AutoConfig.for_model(
        **peer.config, pad_token_id=VOCABULARY.pad, attn_implementation=attention
    )
    theirs: torch.nn.Module = transformers.AutoModelForMaskedLM.from_config(config)
    return theirs


def same_network(family: str, device: torch.device) -> str:
    """Check that both networks have the same loss on the same batch with the same weights, in float32.

    Returns a sentence with both losses; raises `SystemExit` if they differ.
    """
    case = Case("mini", 128, False, 16, 16, family)
    network = case.network.model_copy(update={"vocab_size": VOCABULARY.size})
    torch.manual_seed(1)
    ours = PreTrainingModel(network, "padded")
    theirs = stock(network)
    theirs.load_state_dict(peer_of(network).names.to_theirs(ours.state_dict()), strict=False)
    ours, theirs = ours.to(device).eval(), theirs.to(device).eval()
    batch = case.loader().step(0)[0]
    own = score(PreTraining(False), ours, [packed(batch, device)])["mlm_loss"]
    with torch.no_grad():
        other = float(theirs(**padded(batch, case.length, device)).loss)
    assert own is not None
    losses = f"loss {own:.6f} here, {other:.6f} in transformers"
    if not abs(own - other) < 1e-4 * other:
        raise SystemExit(f"the networks ({family}) are not the same: {losses}")
    return f"{family}: same weights, same batch: {losses}"


def padded(batch: MicroBatch, length: int, device: torch.device) -> dict[str, Tensor]:
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


def peer_steps(case: Case, device: torch.device) -> Steps:
    """Train step after step, for ever; yields the sequences, real tokens and operations of each."""
    torch.manual_seed(1)
    gpu = device.type == "cuda"
    flash = gpu and case.family == "modern" and has_flash()
    model = stock(case.network, "flash_attention_2" if flash else "sdpa").to(device).train()
    run = torch.compile(model, dynamic=False) if gpu and not flash else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loader, held = case.loader(), []
    for start in range(0, HELD * case.rows, case.rows):
        batch = loader.batch(start, start + case.rows)
        flops = forward_flops(case.network, batch.cu_seqlens[1:] - batch.cu_seqlens[:-1], len(batch.labels))
        tokens = sum(len(example.token_ids) for example in examples_of(batch))
        held.append((padded(batch, case.length, device), tokens, flops))
    batches = cycle(held)
    micro_batches = max(1, case.batch // case.rows)
    while True:
        sequences, tokens, flops = 0, 0, 0.0
        for inputs, real, operations in islice(batches, micro_batches):
            with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
                loss = run(**inputs).loss
            (loss / micro_batches).backward()
            sequences, tokens, flops = sequences + case.rows, tokens + real, flops + operations
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield sequences, tokens, STEP * flops
