"""Which device can compute in which precision: every line of the rule that a training and a check of it share."""

import re

from tests.rows import each_row

from bertwright import Recipe
from bertwright.train.precision.config import (
    Bf16Config,
    Bf32Config,
    Fp16Config,
    Fp32Config,
    PrecisionConfig,
    Tf32Config,
)
from bertwright.train.precision.units import Units, refusal

PLAIN, BF16, AMX = Units(), Units(bf16=True), Units(bf16=True, rounds=True)
VOLTA, AMPERE = (Units(gpu=True, capability=has) for has in ((7, 0), (8, 0)))
UNKNOWN = Units(gpu=True)
SLOW = "or train.precision.allow_slow=true to train with it anyway."


@each_row(
    ("config", "units", "reason", "remedy"),
    [
        (Tf32Config(), AMX, "a CPU has no tensor cores", "fp32."),
        (Bf32Config(), BF16, "this CPU has no unit for it (AMX), or", "fp32."),
        (Bf16Config(), PLAIN, "this CPU has no unit for it (AMX or AVX512-BF16): a step", f"fp32, {SLOW}"),
        (Bf16Config(weights="bf16"), PLAIN, "this CPU has no unit for it", f"fp32, {SLOW}"),
        (Fp16Config(), PLAIN, "a CPU takes many times as long", f"fp32, {SLOW}"),
        (Fp16Config(), BF16, "a CPU takes many times as long", f"bf16, fp32, {SLOW}"),
        (
            Tf32Config(),
            VOLTA,
            "this GPU has compute capability 7.0, and tensor cores for it need at least 8.0",
            "fp32.",
        ),
        (
            Bf16Config(),
            VOLTA,
            "this GPU has compute capability 7.0, and units for it need at least 8.0",
            "fp16 or fp32, ",
        ),
        (Bf32Config(), VOLTA, "it is for CPUs", "fp32, or train.device=cpu."),
        (Bf32Config(), AMPERE, "it is for CPUs", "tf32, the equivalent on a GPU, or train.device=cpu."),
        (Bf32Config(), UNKNOWN, "it is for CPUs", "tf32, "),
    ],
)
def test_what_a_device_cannot_do_is_said_with_what_it_can(
    config: PrecisionConfig, units: Units, reason: str, remedy: str
) -> None:
    refused = refusal(config, units)
    assert refused is not None and refused.reason.startswith(reason)
    assert refused.remedy.startswith(f"Set train.precision={remedy}") and refused.remedy.endswith(".")


@each_row(("kind", "units"), [("bf16", PLAIN), ("bf16", VOLTA), ("fp16", BF16)])
def test_what_a_refusal_says_to_add_is_enough(kind: str, units: Units) -> None:
    usual = [f"train.precision={kind}"]
    refused = refusal(Recipe.load("smoke", usual).train.precision, units)
    assert refused is not None and (added := re.search(r"train\.precision\.\S+", refused.remedy))
    assert refusal(Recipe.load("smoke", [*usual, added[0]]).train.precision, units) is None


@each_row(
    ("config", "units"),
    [
        *((Fp32Config(), units) for units in (PLAIN, VOLTA, UNKNOWN)),
        *((Bf16Config(), units) for units in (BF16, AMPERE, UNKNOWN)),
        *((Bf16Config(allow_slow=True), units) for units in (PLAIN, VOLTA)),
        (Bf32Config(), AMX),
        *((Tf32Config(), units) for units in (AMPERE, UNKNOWN)),
        *((Fp16Config(), units) for units in (VOLTA, UNKNOWN)),
        (Fp16Config(allow_slow=True), PLAIN),
    ],
)
def test_what_a_device_can_do_is_not_refused(config: PrecisionConfig, units: Units) -> None:
    assert refusal(config, units) is None
