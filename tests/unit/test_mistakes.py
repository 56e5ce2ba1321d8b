"""Mistakes that people make in recipes, and the text that each gets."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError

PHASE = "train.phases.0"
SHARE = "it is a share"
OPEN = "A bracket, a brace or a quotation mark that is opened before is not closed. Close it."
TWICE = "Give each key once, and all keys of a section in one place."

MISTAKES = {
    "optim.kind=adam": "optim: 'adam' is not one of 'lamb', 'adamw', 'muon'; did you mean 'adamw'?",
    f"{PHASE}.masking=0.15": (
        f"{PHASE}.masking: is a section with its own keys (rate, max_predictions, count, unit, ...), not a "
        f"single value; write for example {PHASE}.masking.rate=0.15"
    ),
    f"{PHASE}.masking.rate=15": (
        f"{PHASE}.masking.rate: 15 must be below 1: it is a share, 0.15 for 15 %. It is described as: "
        '"Share of the tokens (special ones counted, as in the originals) that are predicted, or up to four pairs '
        '[step, share]: from that step of the phase on."'
    ),
    f"{PHASE}.warmup=10000": (
        f"{PHASE}: warmup 10,000 is more than the phase's 3 steps; shorten it, or give a share below 1"
    ),
    f"{PHASE}.warmup=1.5": (f"{PHASE}.warmup: is neither a share below 1 nor a whole number of steps (got 1.5)"),
    f"{PHASE}.warmup=2.0": (
        f"{PHASE}.warmup: is neither a share below 1 nor a whole number of steps: write 2 for steps (got 2.0)"
    ),
    f'{PHASE}.schedule={{kind="wsd", decay=0.95}}': (
        f"{PHASE}: warmup 0.1 and schedule.decay 0.95 are more than the phase together; shorten one"
    ),
    f'{PHASE}.schedule={{kind="poly_nvidia", warmup_before=76}}': (
        f"{PHASE}: schedule.warmup_before 76 is a number of warm-up steps: give warmup in steps, not as a share"
    ),
    "precision=bf16": "precision: unknown key 'precision'; it is called train.precision here.",
    "fp8=1": "fp8: unknown key 'fp8'; it is called train.precision here.",
    "fsdp=1": "fsdp: unknown key 'fsdp'; it is called train.engine here.",
    "learning_rate=1e-4": f"learning_rate: unknown key 'learning_rate'; it is called {PHASE}.learning_rate here.",
    "train.weight_decay=0.1": (
        "train.weight_decay: unknown key 'weight_decay'; it is called optim.weight_decay or "
        "optim.groups.0.weight_decay here."
    ),
    f"{PHASE}.learning_rate=1e-4x": (
        f"{PHASE}.learning_rate: must be a number; got '1e-4x'. It is described as: \"Peak learning rate.\""
    ),
    f"{PHASE}.schedule=exponential": (
        f"{PHASE}.schedule: 'exponential' is not one of 'linear', 'poly', 'poly_nvidia', 'constant', 'cosine', 'wsd'; "
        "use one of these, or write package:Class for a plugin"
    ),
    "optim.weight_decay=0.1": "optim: the key kind is missing; set it to one of 'lamb', 'adamw', 'muon'",
    'optim={kind="adamw", groups=3}': (
        "optim.groups: is a list of sections, not 3; write [[optim.groups]] before each section"
    ),
    'optim={kind="adamw", groups=[{pattern="*", weight_decay=-1}]}': (
        "optim.groups.0.weight_decay: -1 must be 0 or more. It is described as: \"Replaces the optimizer's weight "
        'decay, also for biases and layer norms; if omitted, the usual decay applies."'
    ),
    "train.averaging=swa": "train.averaging: 'swa' is not one of 'none', 'ema', 'last'; use one of these",
    "export.name=../x": (
        "export.name: '../x' must match the pattern ^[A-Za-z0-9][A-Za-z0-9._-]*$. It is described as: "
        '"Name of the model in its model card."'
    ),
    'optim={kind="adamw", groups=[{pattern=""}]}': (
        "optim.groups.0.pattern: '' must have 1 or more characters. It is described as: "
        '"Pattern of tensor names, with * as a wildcard, such as "*.embeddings.*"; `inspect` lists the names of a '
        'trained model."'
    ),
    "corpus.filter.languages=hu": (
        'corpus.filter.languages: must be a list, such as ["hu"]; got \'hu\'. It is described as: "Languages that a '
        'document may be in (wiki codes); empty: the corpus language."'
    ),
    "corpus.filter.languages=[hu, en]": (
        'corpus.filter.languages: must be a list, such as ["hu", "en"], within single quotes in a shell; got '
        "'[hu, en]'. It is described as: \"Languages that a document may be in (wiki codes); empty: the corpus "
        'language."'
    ),
    f"{PHASE}.schedle=poly": f"{PHASE}.schedle: unknown key 'schedle'; did you mean 'schedule'?",
    "train.phases=3": "train.phases: is a list of sections, not 3; write [[train.phases]] before each section",
    "vocab.trainer=unigram": (
        "vocab.trainer: is a section with its own keys (kind, min_frequency, model, input_sentence_size, ...), not "
        "a single value; write for example vocab.trainer.kind=unigram"
    ),
}


@each_row("override", MISTAKES)
def test_a_mistake_in_an_override_is_told(override: str, small_recipe: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, [override])
    assert str(caught.value) == f"command line: {MISTAKES[override]}"


@each_row(
    ("override", "says"),
    [
        ("model={config=3}", "model.config: must be a path in quotes"),
        ("train.phases=[{length=32, steps=0, batch=8}]", f"{PHASE}.steps: 0 must be"),
        ("train.phases[0]={length=32, steps=0, batch=8}", f"{PHASE}.steps: 0 must be"),
    ],
)
def test_a_mistake_within_an_overriding_table_is_not_placed_in_the_file(
    override: str, says: str, small_recipe: Path
) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, [override])
    assert all(line.startswith("command line: ") for line in str(caught.value).splitlines())
    assert f"command line: {says}" in str(caught.value)


@each_row("number", ["inf", "-inf", "nan"])
def test_a_number_without_end_is_refused(number: str, small_recipe: Path) -> None:
    with pytest.raises(RecipeError, match=f"epochs: {number} must be a finite number"):
        Recipe.load(small_recipe, [f"{PHASE}.epochs={number}"])


@each_row(
    ("override", "text"),
    [
        (f"{PHASE}.steps: 3", f"'{PHASE}.steps: 3' is not an override. Write {PHASE}.steps=3."),
        ("steps", "'steps' is not an override. Write key=value, for example train.phases.0.steps=100."),
    ],
)
def test_what_is_no_override_is_told(override: str, text: str, small_recipe: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, [override])
    assert str(caught.value) == text


def test_an_index_in_brackets_is_understood(small_recipe: Path) -> None:
    assert Recipe.load(small_recipe, ["train.phases[0].steps=9"]).train.phases[0].steps == 9
    with pytest.raises(RecipeError, match=r"^command line: train\.phases\.0\.steps: 0 must be 1 or more"):
        Recipe.load(small_recipe, ["train.phases[0].steps=0"])


@each_row(
    ("written", "text"),
    [
        ("corpus:  # texts\n  source: sample", "Write a section as [corpus]."),
        ("[corpus]\nlanguage: hu  # Hungarian", 'This is TOML, not YAML: write language = "hu".'),
        ("[vocab]\nsize: 400", "This is TOML, not YAML: write size = 400."),
        ("[vocab]\nlower_case: yes", "This is TOML, not YAML: write lower_case = true."),
        ("[vocab]\nfile: ~", "This is TOML, not YAML: leave file out: there is no null in TOML."),
        (
            "[vocab]\nsize = 30k",
            "Write the number size with digits alone, such as 30000, or put it in quotes if it is a text.",
        ),
        ("[corpus]\ncontamination: [a, b]", "This is TOML, not YAML: correct that line."),
        ("[vocab]\nsize = none", "Leave size out: there is no null in TOML."),
        ("[corpus]\nlanguage = hu", 'Write language = "hu".'),
        ("[corpus]\nlanguage = no", 'Write language = "no".'),
        ("[vocab]\nlower_case = True  # as before", "Write lower_case = true."),
        ("[vocab]\nfile = None", "Leave file out: there is no null in TOML."),
        ('[vocab]\nfile = "C:\\words\\vocab.txt"', "Put a text with backslashes in single quotes: '...'."),
        ("[vocab", "Correct that line."),
        ("[vocab]\nsize = 400\nsize = 500", TWICE),
        ("[vocab]\nsize = 400\n[vocab]", TWICE),
        ("vocab = 3\n[vocab]\nsize = 400", TWICE),
        ('[corpus]\nsource = ["a",\nlanguage = "hu"', OPEN),
        ('[corpus]\nsource = ["a"\nlanguage = 3\n', OPEN),
        ('[corpus]\r\nsource = ["a",\r\nlanguage = "hu"\r\n', OPEN),
        ('[corpus]\nsource = ["a",\n', OPEN),
    ],
)
def test_habits_from_elsewhere_are_told_in_the_line(written: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(written)
    with pytest.raises(RecipeError) as caught:
        Recipe.load(path)
    assert str(caught.value).startswith(f"{path}: not valid TOML: ") and str(caught.value).endswith(text)
    if advised := re.search(r"[Ww]rite (\w+ = .*)\.$", text):
        assert tomllib.loads(advised[1])


def test_a_byte_order_mark_is_no_mistake(small_recipe: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbf" + small_recipe.read_bytes())
    assert Recipe.load(marked) == Recipe.load(small_recipe)


def test_the_home_folder_is_found_where_no_shell_looked(
    small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    recipe = Recipe.load(small_recipe, ["corpus.source=~/dumps/*.bz2", "corpus.cache_dir=~/kept"])
    assert recipe.corpus.source[0].path == f"{tmp_path}/dumps/*.bz2" and recipe.corpus.cache_dir == tmp_path / "kept"


def test_a_home_folder_that_is_not_known_is_told_with_its_key(small_recipe: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, ["corpus.cache_dir=~nobody-here/kept"])
    assert str(caught.value) == (
        "command line: corpus.cache_dir: the home folder ~nobody-here is not known; write the path without ~ (got "
        "'~nobody-here/kept')"
    )


def test_a_folder_without_weights_is_no_start(small_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RecipeError) as caught:
        Recipe.load(small_recipe, [f"train.init_from={tmp_path}"])
    assert str(caught.value) == (
        f"command line: train.init_from: {tmp_path} has no model.safetensors and no vocab.txt or tokenizer.json; give "
        "a finished train folder, or a folder in the format of transformers (config.json, model.safetensors or "
        "pytorch_model.bin, and vocab.txt or tokenizer.json)"
    )


def test_mistakes_made_in_python_read_alike(small_recipe: Path) -> None:
    whole: Callable[..., Recipe] = Recipe
    with pytest.raises(
        RecipeError, match=r"^Recipe: optim: 'adam' is not one of 'lamb', 'adamw', 'muon'; did you mean 'adamw'"
    ):
        whole(**Recipe.load(small_recipe).model_dump() | {"optim": {"kind": "adam"}})
