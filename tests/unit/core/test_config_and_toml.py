"""Recipes as TOML: mistakes name file, line, key and the nearest right key; all at once."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BeforeValidator, Field
from tests.rows import each_row

from bertwright.core.config import Section, by_kind, differences, extendable, result_settings, runtime_only
from bertwright.core.errors import RecipeError
from bertwright.core.overrides import apply_overrides
from bertwright.core.toml import read_toml, validate
from bertwright.core.validation_messages import locate


class Lamb(Section):
    kind: Literal["lamb"] = "lamb"
    betas: tuple[float, float] = (0.9, 0.999)


class AdamW(Section):
    kind: Literal["adamw"] = "adamw"
    eps: float = 1e-6


class Phase(Section):
    length: int = Field(ge=8)
    steps: int = extendable(1)
    micro: int = runtime_only(0)


class Whole(Section):
    seed: int = 1
    optim: Annotated[Lamb | AdamW, Field(discriminator="kind")] = AdamW()
    phases: tuple[Phase, ...] = Field((), min_length=1)
    workers: int = runtime_only(2)


Choice = Annotated[Lamb | AdamW, Field(discriminator="kind"), BeforeValidator(by_kind)]


class Named(Whole):
    named: Choice = AdamW()
    several: tuple[Choice, ...] = ()


def load(tmp_path: Path, text: str, overrides: tuple[str, ...] = ()) -> Whole:
    path = tmp_path / "r.toml"
    path.write_text(text, encoding="utf-8")
    values, lines = read_toml(path)
    apply_overrides(values, overrides, Whole)
    whole: Whole = validate(Whole, values, "r.toml", lines)
    return whole


MISTAKES = """
sed = 3
[optim]
kind = "lamb"
betaz = [0.9, 0.99]
[[phases]]
length = 8
[[phases]]
length = 4
lenght = 8
steps = "many"
"""


def test_every_mistake_at_once_with_line_and_nearest_key(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load(tmp_path, MISTAKES)
    assert set(str(caught.value).splitlines()) == {
        "r.toml:2: sed: unknown key 'sed'; did you mean 'seed'?",
        "r.toml:5: optim.betaz: unknown key 'betaz'; did you mean 'betas'?",
        "r.toml:9: phases.1.length: 4 must be 8 or more",
        "r.toml:10: phases.1.lenght: unknown key 'lenght'; did you mean 'length'?",
        "r.toml:11: phases.1.steps: must be a whole number; got 'many'",
    }


def test_a_separator_in_a_comment_ends_no_line(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="r.toml:3: sed: unknown key"):
        load(tmp_path, "# one\u2028two\n# three\x85four\nsed = 3")


def test_missing_and_far_off_keys(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"r.toml:1: phases.0.length: this key is required"):
        load(tmp_path, "[[phases]]\nsteps = 3")
    with pytest.raises(RecipeError, match="unknown key 'zzz'; the keys here are optim, phases, seed, workers"):
        load(tmp_path, "zzz = 1")


def test_a_wrong_kind_lists_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"r.toml:1: optim: .*'lam'.*'lamb', 'adamw'"):
        load(tmp_path, '[optim]\nkind = "lam"')


def test_overrides(tmp_path: Path) -> None:
    whole = load(tmp_path, "[[phases]]\nlength = 8", ("phases.0.steps=7", "optim.kind=lamb", "seed=5"))
    assert (whole.phases[0].steps, whole.optim.kind, whole.seed) == (7, "lamb", 5)
    for bad in ("seed", "phases.3.steps=1", "seed.x=1", "phases.x=1", "phases.-1.steps=1", "phases.\u00b2=1"):
        with pytest.raises(RecipeError, match=bad.partition("=")[0]):
            load(tmp_path, "[[phases]]\nlength = 8\n", ("seed=1", bad))


def test_what_is_no_single_value_is_text_as_typed() -> None:
    values = dict[str, object]()
    longest = "9" * 5000
    apply_overrides(values, ["a=1\nb=2", "c=[1,\n2]", f"seed={longest}", "d=-3", "e=1979-05-27x"], Whole)
    assert values == {"a": "1\nb=2", "c": [1, 2], "seed": longest, "d": -3, "e": "1979-05-27x"}


class Texts(Section):
    language: str = ""
    path: Path | None = None
    either: str | float = ""
    count: float = 0


def test_a_key_that_takes_only_text_gets_it_as_typed() -> None:
    for typed in ("nan", "inf", "true", "2026", "1e3", "1979-05-27"):
        values = dict[str, object]()
        apply_overrides(values, [f"language={typed}", f"path={typed}", "either=2026", "count=2026"], Texts)
        assert values == {"language": typed, "path": typed, "either": 2026, "count": 2026}
    values = {}
    apply_overrides(values, ['language="nan"', 'path="a b"'], Texts)
    assert values == {"language": "nan", "path": "a b"}


def test_an_empty_override_takes_the_key_out() -> None:
    values = {"seed": 5, "optim": {"kind": "lamb", "betas": [1, 2]}, "phases": [{"length": 8, "steps": 3}], "text": "x"}
    apply_overrides(values, ["seed=", "optim.betas=", "phases.0.steps=", 'text=""'], Whole)
    assert values == {"optim": {"kind": "lamb"}, "phases": [{"length": 8}], "text": ""}


def test_a_key_below_the_name_of_a_kind_makes_the_name_a_section() -> None:
    values = {"named": "lamb", "several": ["lamb", "adamw"], "optim": {"kind": "lamb"}}
    apply_overrides(values, ["named.eps=1", "several.1.eps=2", "optim.eps=3"], Named)
    adamw = {"kind": "adamw", "eps": 2}
    lamb = {"kind": "lamb"}
    assert values == {"named": {**lamb, "eps": 1}, "several": ["lamb", adamw], "optim": {**lamb, "eps": 3}}
    for values, text in (({"named": "lam"}, "named"), ({"seed": "lamb"}, "seed")):
        with pytest.raises(RecipeError, match=f"'{text}.eps=1': '{text}' is a single value, so it has no keys below"):
            apply_overrides(values, [f"{text}.eps=1"], Named)


@each_row(
    ("override", "says"),
    [("seed=", "the recipe does not set"), ("optim.eps=", "does not set"), ("phases.0=", "give the whole list")],
)
def test_what_cannot_be_taken_out_is_an_error(override: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        apply_overrides({"optim": {"kind": "lamb"}, "phases": [{"length": 8}]}, [override], Whole)


def test_not_toml_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="not valid TOML"):
        load(tmp_path, "a = = 3")
    with pytest.raises(RecipeError, match="cannot read the recipe"):
        read_toml(tmp_path / "none.toml")


def test_place_goes_up_to_the_nearest_line() -> None:
    assert locate("a.b.c", "f", {"a": 3, "a.b": 7}) == "f:7"
    assert locate("x", "f", {"a": 3}) == "f"
    assert locate("a.b", "f", {"a": 3, "a.b": 0}) == "command line"
    assert locate("a", "f", {"a": 3, "a.b": 0}) == "command line", "a section that an override made wrong"
    assert locate("a", "f", {"a": 3, "ab": 0}) == "f:3"


def test_runtime_and_extendable_fields_can_be_excluded() -> None:
    whole = Whole(phases=(Phase(length=8, steps=5, micro=3),), workers=9)
    assert result_settings(whole)["phases"] == [{"length": 8, "steps": 5}] and "workers" not in result_settings(whole)
    assert result_settings(whole, extendable=False)["phases"] == [{"length": 8}]


def test_differences_name_dotted_keys() -> None:
    old, new = {"a": {"b": 1, "c": [1, 2]}, "d": 1}, {"a": {"b": 2, "c": [1, 3]}, "e": 1}
    assert differences(old, new) == ["a.b: 1 -> 2", "a.c.1: 2 -> 3", "d: 1 -> None", "e: None -> 1"]
