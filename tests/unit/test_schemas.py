"""The JSON Schemas that editors check TOML by: they are those of the sections, and a real checker reads them."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.rows import each_row

from bertwright.shipped import SCHEMAS, schema_file, shipped
from tools.schemas import MODELS, schema, text

RECIPE = schema("recipe")
PLACE = jsonschema.Draft7Validator(schema("place"))
CHECKER = jsonschema.Draft7Validator(RECIPE)
TAPLO = shutil.which("taplo", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
SMALL = """
corpus = { source = "huwiki.xml.bz2", language = "hu" }
model.size = "mini"
train.phases = [{ length = 128, batch = 16, learning_rate = 1e-3, steps = 10 }]
"""


@each_row("kind", SCHEMAS)
def test_what_is_published_says_what_the_sections_say(kind: str) -> None:
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        schema_file(kind).write_text(text(kind), encoding="utf-8")
    published = schema_file(kind).read_text(encoding="utf-8")
    assert published == text(kind), "write it anew: python -m tools.schemas"
    jsonschema.Draft7Validator.check_schema(schema(kind))
    assert set(MODELS) == set(SCHEMAS)


@each_row("path", shipped().values())
def test_every_recipe_keeps_to_it(path: Path) -> None:
    assert not list(CHECKER.iter_errors(tomllib.loads(path.read_text(encoding="utf-8"))))


@each_row("path", shipped("place").values())
def test_every_place_keeps_to_it(path: Path) -> None:
    assert not list(PLACE.iter_errors(tomllib.loads(path.read_text(encoding="utf-8"))))


@each_row(
    ("lines", "right"),
    [
        ('kind = "torchrun"', True),
        ('kind = "slurm"\ngpus = 8', True),
        ('kind = "slurm"\ngpus = 8\nhardware.gpu = "v100"', True),
        ('kind = "slurm"\ngpus = 8\nhardware.gpuz = "v100"', False),
        ('hardware = {gpu = "h100", gpus = 8}', True),
        ('kind = "slurms"', False),
        ('kind = "slurm"\ngpu = 8', False),
        ("gpus = 8", False),
        ("hardware = {gpu = 8}", False),
    ],
)
def test_a_place_is_of_a_target_or_of_machines_to_plan_for(lines: str, right: bool) -> None:
    assert PLACE.is_valid(tomllib.loads(lines)) is right


@each_row("kind", SCHEMAS)
def test_every_key_is_described(kind: str) -> None:
    whole = schema(kind)
    sections = {"": whole, **whole["definitions"]} if "properties" in whole else whole["definitions"]
    without = [
        f"{name}.{key}"
        for name, s in sections.items()
        for key, of in s["properties"].items()
        if "description" not in of
    ]
    assert not without and len(sections) >= {"recipe": 40, "place": 4}[kind]


@each_row(
    "lines",
    [
        'corpus.source = ["a.txt", {path = "b.txt", weight = 2}]',
        'corpus.source = {path = "b.txt"}',
        'train.engine = "zero"',
        "train.engine = {kind = 'zero', bucket_mb = 10}",
        'train.observers = ["tensorboard", {kind = "mlflow"}]',
        'optim = {kind = "lamb", betas = [0.9, 0.999]}',
        "train.phases = [{length = 128, batch = 8, learning_rate = 1, epochs = 1.5, micro_batch = 'auto'}]",
        "train.phases = [{length = 128, batch = 8, learning_rate = 1, steps = 9, schedule = {kind = 'wsd'}}]",
        'model = {kind = "modern", size = "base"}',
        "presets.fast = {train.phases.0.batch = 3, optim.betas = [0.9, 0.98], train.precision = 'bf16'}",
        "presets.fast = {model = {kind = 'distilbert', size = 'base'}, train.engine = {kind = 'zero', bucket_mb = 10}}",
    ],
)
def test_every_form_of_a_value_is_taken(lines: str) -> None:
    assert not list(CHECKER.iter_errors(merged(lines)))


@each_row(
    ("lines", "said"),
    [
        ('corpus.langage = "hu"', "langage"),
        ("optim = {betas = [0.9, 0.999]}", "0.9"),
        ('optim = {kind = "lamb", betas = [0.9, 0.999, 0.5]}', "0.5"),
        ('train.engine = "zer"', "zer"),
        ("model = {size = 'huge'}", "huge"),
        ("train.phases = [{length = 128, batch = 0, learning_rate = 1e-3, steps = 10}]", "minimum"),
        ("train.phases = [{length = 128, batch = 8, steps = 10}]", "learning_rate"),
        ("train.phases = []", "[]"),
        ("vocab.size = 'many'", "many"),
        ("corpus = 'wiki.xml'", "wiki.xml"),
        ("presets.fast = {train.phases.0.btach = 3}", "btach"),
        ("presets.fast = {train.phases.first.batch = 3}", "first"),
        ("presets.fast = {trian.seed = 3}", "trian"),
        ("presets.fast = {optim.beta = 3}", "beta"),
        ("presets.fast = {preset = 'slow'}", "preset"),
    ],
)
def test_a_mistake_is_one(lines: str, said: str) -> None:
    errors = [error.message for error in CHECKER.iter_errors(merged(lines))]
    assert errors and said in " ".join(errors)


@pytest.mark.skipif(TAPLO is None, reason="taplo is not installed: pip install taplo")
def test_a_checker_of_toml_reads_it(tmp_path: Path) -> None:
    head = f"#:schema {schema_file('recipe')}\n"
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(head + SMALL, encoding="utf-8")
    bad.write_text(head + SMALL.replace("language", "langage"), encoding="utf-8")
    right, wrong = (
        subprocess.run([TAPLO, "check", "--no-auto-config", path], cwd=tmp_path, capture_output=True, text=True)
        for path in (good, bad)
    )
    assert right.returncode == 0, right.stderr
    assert wrong.returncode != 0 and "'langage' was unexpected" in wrong.stderr


def merged(lines: str) -> dict[str, Any]:
    """The small recipe with other values."""
    return merge(tomllib.loads(SMALL), tomllib.loads(lines))


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    # A section with a kind takes the place of another; of the rest single keys change.
    both = {
        key: merge(below[key], value) if isinstance(below.get(key), dict) and isinstance(value, dict) else value
        for key, value in above.items()
    }
    return below | both
