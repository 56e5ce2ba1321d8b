"""Curves of bfloat16 beside float32: when they differ, and the whole of it in a few steps."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import bf16_curve
from bf16_curve import above, compared, distance, markdown, trained
from run_recipe import Refused

pytestmark = pytest.mark.heavy

STEPS = (100, 200, 300)


def curve(*losses: float) -> bf16_curve.Curve:
    return list(zip(STEPS, losses, strict=True))


FP32 = [curve(6.0, 5.0, 4.0), curve(6.2, 5.3, 4.1), curve(5.9, 4.9, 3.8)]


def moved(curves: list[bf16_curve.Curve], *differences: float) -> list[bf16_curve.Curve]:
    return [
        [(step, loss + difference) for (step, loss), difference in zip(one, differences, strict=True)] for one in curves
    ]


def test_the_distance_of_curves_has_no_sign_and_the_height_has() -> None:
    one, other = curve(6.0, 5.0, 4.0), curve(6.3, 4.7, 4.0)
    assert distance(one, other) == distance(other, one) == pytest.approx(0.2)
    assert above(one, other) == pytest.approx(0) and above(curve(6.3, 5.3, 4.3), one) == pytest.approx(0.3)


def test_curves_of_other_steps_are_not_compared() -> None:
    with pytest.raises(SystemExit, match="scored at different steps: measure them in another folder"):
        distance(FP32[0], [(step + 1, loss) for step, loss in FP32[0]])


def test_rounding_within_what_seeds_do_is_no_difference() -> None:
    found = compared(FP32, moved(FP32, 0.05, -0.05, 0.02))
    # By hand: |0.2, 0.3, 0.1|, |0.1, 0.1, 0.2| and |0.3, 0.4, 0.3|.
    assert found["distance_of_seeds"] == pytest.approx((0.2 + 0.4 / 3 + 1 / 3) / 3)
    assert found["distance_of_precisions"] == pytest.approx(0.04) and found["differs"] is False
    page = markdown(found)
    assert "No more than seeds do." in page and "| 100 | 6.033 (5.900 to 6.200) | 6.083 (5.950 to 6.250) |" in page


def test_farther_than_seeds_differs_also_where_it_is_above_as_often_as_below() -> None:
    found = compared(FP32, moved(FP32, 0.5, -1.0, 0.5))
    assert found["bf16_above_fp32"] == pytest.approx(0) and found["differs"] is True
    assert "**bfloat16 differs" in markdown(found)


def test_always_a_little_above_differs_although_seeds_cross_farther() -> None:
    """Seeds whose curves cross lie far apart point by point, and at the same height."""
    crossing = [curve(6.5, 5.0, 4.0), curve(6.0, 5.0, 4.5), curve(6.0, 5.5, 4.0)]
    found = compared(crossing, moved(crossing, 0.1, 0.1, 0.1))
    assert found["distance_of_precisions"] < found["distance_of_seeds"]
    assert found["bf16_above_fp32"] == pytest.approx(0.1) and found["differs"] is True


def test_a_loss_that_is_no_number_differs() -> None:
    broken = [FP32[0], FP32[1], curve(6.0, float("nan"), 4.0)]
    assert compared(FP32, broken)["differs"] is True


KEYS = ["train.heldout_sequences=8", "train.phases.0.batch=4", "train.phases.0.micro_batch=4", "train.threads=1"]


def test_one_command_trains_both_with_every_seed(
    small_recipe: Path,
    tmp_path: Path,
    in_process: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bf16_curve, "run_recipe", in_process)
    options = ["--steps", "40", "--seeds", "2", "--recipe", str(small_recipe), "--allow-slow", "--key", *KEYS]
    bf16_curve.main(str(tmp_path), *options)
    found = json.loads((tmp_path / "bf16_curve.json").read_text())
    for name in ("fp32", "bf16"):
        assert [[step for step, _ in each] for each in found[name]] == [list(range(2, 41, 2))] * 2
    assert found["fp32"] != found["bf16"] and found["fp32"][0] != found["fp32"][1]
    assert found["distance_of_precisions"] < 0.02, "a rounding changes little in so few steps"
    assert (tmp_path / "bf16_curve.md").read_text() in capsys.readouterr().out
    recipes = {path.parent.name: path.read_text() for path in tmp_path.glob("*-*/recipe.toml")}
    assert sorted(recipes) == ["bf16-1", "bf16-2", "fp32-1", "fp32-2"]
    assert all(('"bf16"' in text) is name.startswith("bf16") for name, text in recipes.items())
    # The same weights to begin with: what differs is rounding alone.
    starts = [metrics(tmp_path / name)[0]["mlm_loss"] for name in ("fp32-1", "bf16-1", "fp32-2")]
    assert starts[0] == pytest.approx(starts[1], abs=5e-3) and starts[0] != pytest.approx(starts[2], abs=1e-6)


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in (run / "train" / "metrics.jsonl").read_text().splitlines()]


def test_without_a_unit_it_says_how_to_do_it_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("train.precision = bf16, but this CPU has no unit for it.")

    monkeypatch.setattr(bf16_curve, "run_recipe", refuse)
    monkeypatch.setattr(bf16_curve, "linked", lambda *_: None)
    with pytest.raises(SystemExit, match="has no unit for it. Or compute it all the same: --allow-slow"):
        trained(tmp_path, Path("a.toml"), [], 1, "bf16")


@each_row("option", [["--seeds", "1"], ["--steps", "19"]])
def test_too_little_to_judge_by_is_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bf16_curve.main("folder", *option)
    assert "give 2 seeds and 20 steps, or more" in capsys.readouterr().err
