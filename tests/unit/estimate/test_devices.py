"""What a device of a plan is given, and which numbers of it a forecast uses."""

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.estimate import devices
from bertwright.estimate.devices import Device, find_gpu, gpu_of_driver, gpus, processor
from bertwright.estimate.work import UNKNOWN_MEMORY


def test_a_gpu_has_the_numbers_of_its_data_sheet() -> None:
    """NVIDIA H100 SXM: 80 GB at 3.35 TB/s, NVLink 450 GB/s in one direction, 700 W; dense tensor operations, of which a
    network reaches 74 % with tensor cores, as measured, and 80 % without."""
    h100 = find_gpu("h100")
    assert (h100.memory, h100.bandwidth, h100.link, h100.watts) == (80e9, 3350e9, 450e9, 700)
    assert h100.gpu and h100.capability == (9, 0)
    for precision, tera, share in (
        ("fp32", 67, 0.8),
        ("tf32", 495, 0.74),
        ("bf32", 495, 0.74),
        ("bf16", 989, 0.74),
        ("fp16", 989, 0.74),
    ):
        assert h100.has(precision) and h100.speed(precision) == pytest.approx(tera * 1e12 * share, rel=2e-3), precision


def test_a_v100_has_units_for_float16_only() -> None:
    """15.7 TFLOP/s in float32 (data sheet of the V100 SXM2)."""
    v100 = find_gpu("v100")
    assert [precision for precision in devices.UNITS if v100.has(precision)] == ["fp32", "fp16"]
    assert v100.speed("bf16") == v100.speed("tf32") == v100.speed("fp32")
    assert v100.speed("fp32") == pytest.approx(0.8 * 15.7e12, rel=2e-3) and v100.speed("fp16") > 5 * v100.speed("fp32")


@each_row("name", gpus())
def test_every_gpu_is_found_by_its_driver_name(name: str) -> None:
    words, device = gpus()[name]
    found = gpu_of_driver(f"NVIDIA {words}", 7e9)
    assert found and found.memory == 7e9 and found.speeds == device.speeds and found.link == device.link


def test_the_smallest_gpu_stands_for_an_unknown_one() -> None:
    """A forecast that is too slow is better than one that is too fast: of those with tensor cores none is below it."""
    smallest = find_gpu(devices.SMALLEST)
    for name, device in ((name, device) for name, (_, device) in gpus().items() if "half" in device.speeds):
        assert device.memory >= smallest.memory and device.bandwidth >= smallest.bandwidth, name
        assert device.speed("fp16") >= smallest.speed("fp16"), name


def test_everything_fits_unknown_memory() -> None:
    known, unknown = (Device("x", memory, {"fp32": 1.0}, {"fp32": 1.0}, 1.0, 1.0, 1.0) for memory in (32e9, 0.0))
    assert find_gpu(devices.SMALLEST).memory == UNKNOWN_MEMORY
    assert known.fits(32e9) and not known.fits(32e9 + 1) and unknown.fits(1e15)


def test_a_name_is_corrected_or_all_are_listed() -> None:
    with pytest.raises(RecipeError, match=r"h100\?"):
        find_gpu("H1000")
    with pytest.raises(RecipeError) as error:
        find_gpu("")
    assert all(name in str(error.value) for name in gpus())


@each_row(
    ("flags", "fp32", "half", "slow"),
    [
        ({"avx2", "avx512f", "avx512_bf16", "amx_bf16"}, 62, 600, None),
        ({"avx2", "avx512f", "avx512_bf16"}, 80, 190, None),
        ({"avx2", "avx512f"}, 62, None, None),
        ({"avx2"}, 40, None, 2.1),
        (set(), 11, None, 2.1),
        ({"bf16"}, 11, 55, None),  # an ARM processor
    ],
)
def test_a_core_is_as_fast_as_its_best_instructions(
    flags: set[str], fp32: float, half: float | None, slow: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GFLOP/s of a core, of which a network reaches nine tenths; tf32 stands for bf32, which takes two products.

    Products of 16-bit numbers are slower than those of float32 where torch has neither their units nor AVX-512.
    """
    monkeypatch.setattr(devices, "processor_flags", lambda: frozenset(flags))
    device = processor(4, 8e9)
    assert device.speed("fp32") == pytest.approx(4 * fp32 * 1e9 * 0.9) and not device.gpu
    assert device.has("bf16") == (half is not None)
    assert device.speed("bf16") == pytest.approx(4 * (half or slow or fp32) * 1e9 * 0.9)
    assert device.speed("bf32") == pytest.approx(4 * (half / 2 if half else fp32) * 1e9 * 0.9)


@each_row(("isa", "most"), [("avx2", 200e9), ("avx512", 200e9), ("avx512_bf16", 200e9), ("amx", 307e9)])
def test_cores_share_the_bandwidth_of_their_socket(isa: str, most: float) -> None:
    few, many = processor(4, 8e9, isa), processor(64, 8e9, isa)
    assert (few.bandwidth, few.link, few.watts) == (80e9, 16e9, 24)
    assert (many.bandwidth, many.link, many.watts) == (most, 256e9, 384)


def test_the_processors_of_a_place_are_not_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "processor_flags", lambda: frozenset({"avx2"}))
    assert not processor(4, 8e9).has("bf16") and processor(4, 8e9, "amx").has("bf16")
    monkeypatch.setattr(devices, "processor_flags", lambda: frozenset({"avx2", "avx512f", "avx512_bf16", "amx_bf16"}))
    assert processor(4, 8e9) == processor(4, 8e9, "amx") and not processor(4, 8e9, "avx2").has("bf16")
