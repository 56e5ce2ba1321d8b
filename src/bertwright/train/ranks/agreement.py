"""Checks that all ranks run the same training, and later that all hold the same weights; if not, every rank reports
the differences.

Before the first step, hashes are compared. The ranks exchange the hashed values only if the hashes differ. They include
the code as it is installed, file by file: two commits, or an installation that somebody edited, may have the same
version.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from bertwright.core import __version__, rng
from bertwright.core.config import role
from bertwright.core.dotted import leaves
from bertwright.core.errors import ArtifactError, RankError
from bertwright.core.files import sha256, sha256_of
from bertwright.model.device import resolve_device
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.job import TrainJob

OWN = {"device", "timeout", "start_timeout", "memory_limit_gb", "keep_checkpoints", "observers", "profile"}
"""Keys of `[train]` that may differ between ranks, or that only rank 0 uses. All other keys must agree."""
_LONGEST = 100
"""Characters of a value that are sent and shown; a longer value is cut off and followed by its hash."""
_SHOWN = 8
"""Maximum number of keys listed in an error."""


def assert_same_training(ranks: Ranks, job: TrainJob) -> None:
    """Raise `ArtifactError` on every rank, naming the keys and both values, unless all ranks have the same recipe,
    code of bertwright, vocabulary and data. All ranks must call this together."""
    if ranks.world == 1:
        return
    ours = dict(_training(job))
    if _alike(ranks, json.dumps(ours)):
        return
    first, *others = (dict(json.loads(text)) for text in _texts(ranks, json.dumps(ours)))
    other, theirs = next((rank, each) for rank, each in enumerate(others, 1) if each != first)
    keys = [key for key in (first | theirs) if first.get(key) != theirs.get(key)]
    differences = [
        f"{key} is {first.get(key, 'absent')} on rank 0 and {theirs.get(key, 'absent')} on rank {other}" for key in keys
    ]
    more = f", and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    raise ArtifactError(
        f"the {ranks.world} ranks have different settings: {'; '.join(differences[:_SHOWN])}{more}. Start all ranks "
        "with the same recipe and overrides, the same code of bertwright, the same shared run folder (--out), and "
        "either a GPU for every rank or none (train.device)."
    )


def assert_equal(ranks: Ranks, value: str, what: str) -> None:
    """Raise `ArtifactError` on every rank, listing each rank's value, unless all ranks pass the same value.

    All ranks must call this together.
    """
    if _alike(ranks, value):
        return
    found = ", ".join(f"{text} on rank {rank}" for rank, text in enumerate(_texts(ranks, _short(value))))
    raise ArtifactError(
        f"the {ranks.world} ranks do not find the same files: {what} is {found}. All ranks need the same shared "
        "folder; if its file system shows new files late, wait a little and run the same command again."
    )


def _training(job: TrainJob) -> Iterator[tuple[str, str]]:
    """Yield everything a training depends on, as dotted keys with values, including how its ranks work together."""
    code = source_hashes()
    yield "the version of bertwright", __version__
    yield "the code of bertwright", sha256_of(code)[:12]
    yield "the version of its training", str(job.identity.version)
    # A rank without its GPU would wait in a different transport than the others, or silently slow them down.
    yield "the kind of device", resolve_device(job.config.device).type
    yield from _flat(job.identity.config | {"train": _settings(job.config)})
    for name, fingerprint in job.checkpoint.inputs.items():
        yield f"the fingerprint of {name}", fingerprint
    yield from _flat({f"steps of train.phases.{phase.index}": phase.steps for phase in job.phases})
    # Last, because another version differs in many files, of which the error then lists only the first.
    for name, digits in code.items():
        yield f"the file bertwright/{name}", digits


def _settings(value: Any) -> Any:
    """Return a section as JSON, without files (identified by their content) and without keys that may differ by
    rank."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {
            name: _settings(member)
            for name, member in value
            if name not in OWN and role(fields[name]) != "known_by_content"
        }
    if isinstance(value, tuple | list):
        return [_settings(item) for item in value]
    return value


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((key, _short(json.dumps(value, default=str))) for key, value in leaves(values))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... (hash {sha256_of(text)[:12]})"


def _alike(ranks: Ranks, value: str) -> bool:
    """Whether all ranks pass the same value; sends nothing if there is only one rank."""
    # 63 bits, because the all-reduce uses signed integers.
    return ranks.world == 1 or len(set(ranks.each(rng.key(value) >> 1))) == 1


def text_of(ranks: Ranks, text: str, owner: int = 0) -> str:
    """Return the text of rank `owner`, which is not empty. All ranks must call this together."""
    if ranks.rank == owner:
        letters = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
        (size,) = ranks.all_reduce_async([len(letters)]).result()
    else:
        (size,) = ranks.all_reduce_async([0]).result()
        letters = torch.zeros(size, dtype=torch.uint8)
    ranks.send([letters], owner)
    return letters.numpy().tobytes().decode()


def _texts(ranks: Ranks, text: str) -> list[str]:
    """Return the text of each rank, in rank order."""
    return [text_of(ranks, text, rank) for rank in range(ranks.world)]


PACKAGE = Path(__file__).parents[2]


def source_hashes(package: Path = PACKAGE) -> dict[str, str]:
    """The first 12 hexadecimal digits of the SHA-256 of each Python file, by its path in the package.

    Takes about 0.05 s of a processor for 600 files. Raises `OSError` if one cannot be read.
    """
    return {path.relative_to(package).as_posix(): sha256(path)[:12] for path in sorted(package.rglob("*.py"))}


def check_same_weights(ranks: Ranks, model: nn.Module, step: int) -> None:
    """Raise `RankError` on all ranks, naming those that differ, unless the weights after `step` are the same on all,
    bit by bit, as they must be if each rank applies the same gradient sum.

    Nothing else notices a bit that flips in memory or on a link of one rank: losses look as before, and the weights
    that rank 0 saves no longer match those that the other ranks' gradients were computed for.
    All ranks must call this together, with an engine in which each rank holds all weights. With one rank, nothing is
    computed or sent.
    """
    if ranks.world == 1:
        return
    # Each rank fills its own slot with the halves of its hash, so the sum over ranks is a list of all hashes.
    halves = [0] * (2 * ranks.world)
    halves[2 * ranks.rank : 2 * ranks.rank + 2] = divmod(weights_hash(model), 2**32)
    sums = ranks.all_reduce_async(halves).result()
    hashes = [high * 2**32 + low for high, low in zip(sums[::2], sums[1::2], strict=True)]
    if len(set(hashes)) > 1:
        raise RankError(
            f"after step {step:,} the ranks no longer have the same weights: {_who(hashes)}. Processors or GPUs of "
            "different kinds add in different orders (train.cpu_isa gives all processors the same instructions); if "
            "all are of one kind, the memory, a link or a processor of one of them may be faulty. Run the same command "
            "again: training goes on from its newest checkpoint, which was saved when all were the same. If it happens "
            "again, do not use that machine."
        )


def weights_hash(model: nn.Module) -> int:
    """Return a 64-bit hash of the bytes of all parameters, in their order."""
    digest = blake2b(digest_size=8)
    for parameter in model.parameters():
        flat = parameter.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data)
    return int.from_bytes(digest.digest(), "big")


def _who(hashes: Sequence[int]) -> str:
    """Describe which ranks differ from the majority, or which groups of ranks agree if there is no majority."""
    ((common, number), *_) = Counter(hashes).most_common(1)
    if 2 * number > len(hashes):
        odd = [rank for rank, value in enumerate(hashes) if value != common]
        return f"{_ranks(odd)} differ{'s' * (len(odd) == 1)} from the other {number}"
    groups = [[rank for rank, value in enumerate(hashes) if value == each] for each in dict.fromkeys(hashes)]
    return ", ".join(map(_ranks, groups)) + " differ from each other"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
