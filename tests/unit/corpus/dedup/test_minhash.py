import hashlib

import numpy as np
from tests.reference.near_copies import resemblance

from bertwright.corpus.dedup.minhash import BANDS, WIDTH, signatures

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


def test_signatures_are_the_same_on_every_machine_and_release() -> None:
    """The parts of one corpus may be signed on several machines: their seeds, hashes and kernels must agree."""
    found = signatures([" ".join(text(i, size)) for i, size in enumerate((0, 1, 4, 40, 300, 5000))])
    assert hashlib.sha256(found.astype("<u4").tobytes()).hexdigest() == (
        "9016f59f4b8f833a78c5fb955690a98d3edfb52f7f511a654970da6458fc38b8"
    )
