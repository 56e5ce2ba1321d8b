import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.reference.near_copies import resemblance

from bertwright.corpus.dedup.minhash import (
    BANDS,
    WIDTH,
    SignPart,
    read_signatures,
    sign_part,
    signatures,
    signatures_of,
)

WORDS = [a + b + c for a in ("ba", "ke", "lo", "mi") for b in ("ra", "so", "ti") for c in ("n", "d", "k", "")]


def text(seed: int, words: int) -> list[str]:
    return [WORDS[i] for i in np.random.default_rng(seed).integers(0, len(WORDS), words)]


def test_equal_numbers_estimate_the_resemblance() -> None:
    """Within four standard errors of 128 numbers, from texts that share all to texts that share nothing."""
    first = text(1, 600)
    for changed in (0, 3, 10, 30, 80, 600):
        second = list(first)
        for place in np.random.default_rng(changed).permutation(600)[:changed].tolist():
            second[place] = f"új{place}"
        true = resemblance(" ".join(first), " ".join(second))
        a, b = signatures([" ".join(first), " ".join(second)])
        estimate = (a == b).mean()
        assert abs(estimate - true) <= 4 * (max(true * (1 - true), 0.001) / (BANDS * WIDTH)) ** 0.5


def test_a_signature_depends_on_its_text_alone() -> None:
    texts = [" ".join(text(i, 1 + i * i)) for i in range(20)]
    together = signatures(texts)
    assert together.shape == (20, BANDS, WIDTH)
    assert all(np.array_equal(signatures([alone])[0], among) for alone, among in zip(texts, together, strict=True))
    assert signatures([]).shape == (0, BANDS, WIDTH)


def test_a_part_is_signed_some_documents_at_a_time(
    tmp_path: Path, write_part: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.corpus.dedup.minhash._AT_ONCE", 2000)
    most = []
    monkeypatch.setattr(
        "bertwright.corpus.dedup.minhash.signatures",
        lambda texts, **options: (most.append(sum(map(len, texts))), signatures(texts, **options))[1],
    )
    texts = [[" ".join(text(i, 1 + i)), " ".join(text(-i % 97, 5))] for i in range(90)]
    part = write_part(tmp_path / "0000-000000", [[document] for document in texts])
    sign_part(SignPart(part, True))
    whole = signatures("\n".join(document) for document in texts)
    assert np.array_equal(signatures_of(part), whole)
    some = np.zeros((3, BANDS * WIDTH), np.uint32)
    read_signatures(part, [2, 50, 89], some)
    assert np.array_equal(some, whole[[2, 50, 89]].reshape(3, -1))
    assert len(most) > 5 and max(most) < 4000
    empty = write_part(tmp_path / "0000-000001", [])
    sign_part(SignPart(empty, True))
    assert signatures_of(empty).shape == (0, BANDS, WIDTH)


def test_signatures_are_the_same_on_every_machine_and_release() -> None:
    """The parts of one corpus may be signed on several machines: their seeds, hashes and kernels must agree."""
    found = signatures([" ".join(text(i, size)) for i, size in enumerate((0, 1, 4, 40, 300, 5000))])
    assert hashlib.sha256(found.astype("<u4").tobytes()).hexdigest() == (
        "9016f59f4b8f833a78c5fb955690a98d3edfb52f7f511a654970da6458fc38b8"
    )
