"""The forms in which an answer may be given."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.init.answers import parse_hours, parse_language, parse_machine, parse_out, parse_quality


@each_row("text", ["16-cores", "16 cores", "16cores", " 16-CORES ", "16-core"])
def test_cores_are_one_machine_without_gpus(text: str) -> None:
    found = parse_machine(text)
    assert (found.cores, found.ranks, found.device.gpu) == (16, 1, False)
    assert parse_machine("4096-cores").cores == 4096


@each_row(("text", "gpus"), [("h100", 1), ("8xh100", 8), ("8 x H100", 8), ("1xh100", 1), (" h100", 1)])
def test_gpus_are_a_rank_each(text: str, gpus: int) -> None:
    found = parse_machine(text)
    assert (found.device.name, found.ranks, found.nodes) == ("h100", gpus, 1)


@each_row("text", ["", "cores", "-2-cores", "2.5-cores", "xh100", "8x", "8x-h100", "there", "h100 h100", "4097-cores"])
def test_other_words_are_no_machine(text: str) -> None:
    with pytest.raises(RecipeError, match="--machine"):
        parse_machine(text)


@each_row(("text", "hours"), [("24", 24.0), ("0.5", 0.5), ("1e1", 10.0), ("87600", 87_600.0)])
def test_hours_are_a_number_of_at_most_ten_years(text: str, hours: float) -> None:
    assert parse_hours(text) == hours
    for wrong in ("0", "-0.5", "87600.1", "inf", "nan", "", "1h", "1,5"):
        with pytest.raises(RecipeError, match="--hours"):
            parse_hours(wrong)


def test_a_language_is_a_code_of_a_wikipedia() -> None:
    assert parse_language(" hu ") == "hu"
    for wrong in ("", "hu-HU", "../hu", "x y"):
        with pytest.raises(RecipeError, match="--language"):
            parse_language(wrong)


def test_a_quality_is_one_of_three() -> None:
    assert [parse_quality(each) for each in ("quick", "classic", "best")] == ["quick", "classic", "best"]
    with pytest.raises(RecipeError, match="--quality Best"):
        parse_quality("Best")


def test_no_file_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_out("~/new.toml") == tmp_path / "new.toml"
    (tmp_path / "there.toml").touch()
    (tmp_path / "link.toml").symlink_to(tmp_path / "nowhere.toml")
    for name in ("there.toml", "link.toml", "new", "new.toml.txt"):
        with pytest.raises(RecipeError, match="--out"):
            parse_out(f"{tmp_path}/{name}")
    for name in ("a\nb.toml", "a\x1b.toml"):
        with pytest.raises(
            RecipeError, match=r"--out '.*(\\n|\\x1b).*': it contains a character that cannot be printed"
        ):
            parse_out(f"{tmp_path}/{name}")


@each_row("gpus", [2, 0])
def test_this_machine_has_a_rank_for_each_gpu_or_one(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("init.answers", "estimate.machine"):
        monkeypatch.setattr(f"bertwright.{module}.training_gpus", lambda recipe: (80 * 10**9,) * gpus)
    monkeypatch.setattr("bertwright.estimate.machine.gpu_names", lambda: ("NVIDIA H100 80GB HBM3",) * gpus)
    found = parse_machine(" Here ")
    assert (found.ranks, found.device.name, found.here) == (gpus or 1, "h100" if gpus else "cpu", True)
