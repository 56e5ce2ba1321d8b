"""Hints of errors, for programs: what to do, whole, or nothing."""

from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.test_mistakes import MISTAKES, PHASE

from bertwright import Recipe
from bertwright.cli.text import error_hint
from bertwright.core.errors import RecipeError

HINTS = {
    "optim.kind=adam": "did you mean 'adamw'?",
    f"{PHASE}.masking=0.15": f"write for example {PHASE}.masking.rate=0.15",
    f"{PHASE}.masking.rate=15": "it is a share, 0.15 for 15 %.",
    f"{PHASE}.warmup=10000": "shorten it, or give a share below 1",
    f"{PHASE}.warmup=1.5": "",
    f"{PHASE}.warmup=2.0": "write 2 for steps",
    f'{PHASE}.schedule={{kind="poly_nvidia", warmup_before=76}}': "give warmup in steps, not as a share",
    "precision=bf16": "it is called train.precision here.",
    f"{PHASE}.learning_rate=1e-4x": "",
    f"{PHASE}.schedule=exponential": "use one of these, or write package:Class for a plugin",
    'optim={kind="adamw", groups=[{pattern="*", weight_decay=-1}]}': "",
    'optim={kind="adamw", groups=[{pattern=""}]}': "",
    "export.name=../x": "",
}
OTHERS = {
    f"{PHASE}.steps=": "give exactly one of steps, epochs, samples, tokens",
    "corpus.language=hungarian": "did you mean 'hu' (Hungarian)?",
    f"{PHASE}.batch=0": "",
    "train.sed=1": "did you mean 'seed'?",
}


@each_row("override", [*MISTAKES, *OTHERS])
def test_the_hint_of_a_mistake_is_whole_or_empty(override: str, small_recipe: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, [override])
    told = error_hint(str(caught.value))
    assert told == (HINTS | OTHERS).get(override, told)
    if told:
        before = str(caught.value).partition(told)[0]
        assert before.endswith(("; ", ". ", ": ")) and "described as" not in before
        assert "(got" not in told and told.count('"') % 2 == 0


def test_each_of_several_mistakes_has_a_line(small_recipe: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, ["train.sed=1", f"{PHASE}.batch=0", "corpus.language=hungarian"])
    told = dict(zip(str(caught.value).splitlines(), error_hint(str(caught.value)).splitlines(), strict=True))
    assert {line.split(": ")[1]: said for line, said in told.items()} == {
        "train.sed": "did you mean 'seed'?",
        f"{PHASE}.batch": "",
        "corpus.language": "did you mean 'hu' (Hungarian)?",
    }


@each_row(
    ("message", "told"),
    [
        ("a.json is one JSON array. Write one, e.g. with `jq`.", "Write one, e.g. with `jq`."),
        (
            "x has two. Set it to 1; then run the command again: all is kept.",
            "Set it to 1; then run the command again: all is kept.",
        ),
        ("stage: a worker was killed (out of memory?). Run it with fewer workers.", "Run it with fewer workers."),
        ("bench needs accelerate: pip install 'bertwright[bench]'", "pip install 'bertwright[bench]'"),
        ("r.toml:3: model: this key is required.", ""),
    ],
)
def test_the_hint_is_the_last_sentence_or_clause(message: str, told: str) -> None:
    assert error_hint(message) == told
