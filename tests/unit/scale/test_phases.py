"""Phases at a tiny scale: what stays in proportion, by hand from 12 steps and 2,048 tokens of the largest batch."""

from typing import Any

from tests.rows import each_row

from bertwright.scale.replacements import scale_phases
from bertwright.train.settings.phase_config import PhaseConfig


def phase(**keys: Any) -> PhaseConfig:
    given = {"length": 128, "batch": 64, "learning_rate": 1e-3, **keys}
    return PhaseConfig.model_validate(given if any(name in keys for name in LENGTHS) else {**given, "steps": 100})


LENGTHS = ("steps", "samples", "tokens", "epochs")


def scaled(*phases: PhaseConfig, labelled: int | None = None) -> list[dict[str, Any]]:
    """For each phase the keys that are replaced, with their values."""
    found: list[dict[str, Any]] = [{} for _ in phases]
    for key, value, reason in scale_phases(phases, labelled):
        _, _, index, name = key.split(".", 3)
        assert reason and name not in found[int(index)]
        found[int(index)][name] = value
    return found


def changed(given: PhaseConfig, replaced: dict[str, Any]) -> PhaseConfig:
    """The phase with its replaced keys, which has to be a valid one."""
    values = given.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    for name, value in replaced.items():
        values.pop(name, None)
        values |= {} if value is None else {name: value}
    return PhaseConfig.model_validate(values)


@each_row(
    ("steps", "short"),
    [
        ((7038, 1563), (10, 2)),  # NVIDIA's phases: 9.8 and 2.2
        ((900, 300), (9, 3)),
        ((1_000_000, 1000), (12, 2)),  # no phase of several steps has less than two
        ((6, 6), (6, 6)),
        ((5,), (5,)),  # fewer than 12 stay
        ((2, 1000), (2, 12)),
        ((1,), (1,)),
    ],
)
def test_twelve_steps_are_shared_as_the_steps_were(steps: tuple[int, ...], short: tuple[int, ...]) -> None:
    assert tuple(each["steps"] for each in scaled(*(phase(steps=n) for n in steps))) == short


@each_row(
    ("length", "planned"),
    [({"samples": 640_000}, 10_000), ({"tokens": 640_000 * 128}, 10_000), ({"epochs": 3.0}, 12), ({"samples": 3}, 1)],
)
def test_other_lengths_are_turned_into_steps(length: dict[str, Any], planned: int) -> None:
    """Of epochs, whose examples are not known, a phase counts 12 steps."""
    whole, other = scaled(phase(**length), phase(steps=planned))
    assert whole["steps"] == other["steps"]
    assert {name: whole[name] for name in LENGTHS if name in whole and name != "steps"} == dict.fromkeys(length)
    assert not {"samples", "tokens", "epochs"} & set(other)


def test_the_largest_batch_has_2048_tokens_and_the_others_keep_their_ratio() -> None:
    """64 of 128 tokens are 8,192: a quarter stays. 16 of 512 are as many, and 4 of them stay."""
    found = scaled(phase(batch=64), phase(batch=16, length=512), phase(batch=32), phase(batch=1))
    assert [each["batch"] for each in found] == [16, 4, 8, 1]
    assert [each["batch"] for each in scaled(phase(batch=8), phase(batch=4))] == [8, 4], "small batches stay"
    assert [each["batch"] for each in scaled(phase(batch=2, length=4096))] == [1]


@each_row(
    ("keys", "wanted"),
    [
        ({"warmup": 20}, {"warmup": 2}),
        ({"warmup": 1}, {"warmup": 1}),
        ({"warmup": 100}, {"warmup": 12}),
        ({"warmup": 0.2}, {}),
        ({"end_after": 50}, {"end_after": 6}),
        ({"end_after": 1}, {"end_after": 1}),
        ({"end_after": 100}, {"end_after": 12}),
        ({"hours": 2.0}, {"hours": None}),
        ({}, {}),
    ],
)
def test_parts_of_a_phase_keep_their_share(keys: dict[str, Any], wanted: dict[str, Any]) -> None:
    """100 steps become 12."""
    (found,) = scaled(given := phase(**keys))
    assert {name: value for name, value in found.items() if name in ("warmup", "end_after", "hours")} == wanted
    assert changed(given, found).steps == 12


@each_row(
    ("keys", "wanted"),
    [
        ({"micro_batch": 32}, {"micro_batch": 8}),  # half of the batch of 16: gradients are still accumulated
        ({"micro_batch": 1}, {"micro_batch": 8}),
        ({"micro_batch": 64}, {"micro_batch": None}),
        ({"micro_batch": 0}, {}),
        ({"micro_batch": "auto"}, {}),
        ({"micro_tokens": 4096}, {"micro_tokens": 256}),
        ({"packing": True, "micro_batch": 32}, {"micro_batch": 2}),
        ({"packing": True}, {"micro_batch": 2}),
        ({"batch_warmup": [[0, 8], [50, 16], [70, 64]]}, {"batch_warmup": [[0, 8], [1, 16]]}),
        ({"batch": 1, "packing": True}, {"micro_batch": 1}),
        ({"batch": 2, "micro_batch": 1, "length": 2048}, {"micro_batch": 1}),
    ],
)
def test_passes_keep_their_kind(keys: dict[str, Any], wanted: dict[str, Any]) -> None:
    (found,) = scaled(given := phase(**keys))
    assert {name: value for name, value in found.items() if name.startswith(("micro", "batch_"))} == wanted
    assert changed(given, found).batch == found["batch"]


def test_a_batch_of_one_has_no_room_to_grow() -> None:
    given = phase(batch=2, length=4096, batch_warmup=[[0, 1], [5, 2]])
    (found,) = scaled(given)
    assert found["batch"] == 1 and found["batch_warmup"] is None
    assert changed(given, found).batch_warmup == ()


def test_data_are_replaced_by_what_is_built_in() -> None:
    given = phase(data="hdf5", quarantine=True)
    (found,) = scaled(given)
    assert (found["data"], found["quarantine"]) == (None, None) and changed(given, found).data is None
    (found,) = scaled(given, labelled=0)
    assert str(found["data"]).endswith(".jsonl") or "sample" in str(found["data"])
    (found,) = scaled(phase())
    assert "data" not in found and "quarantine" not in found


@each_row(
    ("warmup", "before", "scaled_warmup", "scaled_before"),
    [
        (50, 25, 6, 3),
        (50, 49, 6, 5),  # something is left of the warm-up
        (50, 1, 6, 0),
        (9, 8, 1, 0),
    ],
)
def test_a_warmup_before_the_first_step_is_scaled(
    warmup: int, before: int, scaled_warmup: int, scaled_before: int
) -> None:
    """Of 100 steps, which become 12."""
    given = phase(warmup=warmup, schedule={"kind": "poly_nvidia", "warmup_before": before})
    (found,) = scaled(given)
    assert (found["warmup"], found["schedule.warmup_before"]) == (scaled_warmup, scaled_before)
    assert "schedule.warmup_before" not in scaled(phase(warmup=50, schedule="poly_nvidia"))[0]


@each_row(
    ("rate", "wanted"),
    [
        ([[0, 0.3], [50, 0.2]], [[0, 0.3], [6, 0.2]]),
        ([[0, 0.3], [1, 0.25], [2, 0.2]], [[0, 0.3], [1, 0.25], [2, 0.2]]),  # no two at one step
        ([[0, 0.3], [50, 0.25], [99, 0.2]], [[0, 0.3], [6, 0.25]]),  # beyond the last step
        ([[0, 0.3], [50, 0.25], [95, 0.2]], [[0, 0.3], [6, 0.25], [11, 0.2]]),
    ],
)
def test_mask_rates_change_where_they_did(rate: Any, wanted: Any) -> None:
    (found,) = scaled(phase(masking={"rate": rate}))
    assert found["masking.rate"] == wanted
    assert "masking.rate" not in scaled(phase(masking={"rate": 0.3}))[0]
