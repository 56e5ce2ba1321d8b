"""Keys of another kind than the one that a section has, and the text that each gets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import is_model, members

OF_ANOTHER_KIND = {
    "optim": ('kind="lamb", momentum=0.9', "lamb", "muon"),
    "vocab.trainer": ('kind="wordpiece", model="bpe"', "wordpiece", "sentencepiece"),
    "train.averaging": ('kind="last", decay=0.9', "last", "ema"),
    "train.engine": ('kind="fsdp", bucket_mb=3', "fsdp", "ddp or zero"),
    "train.graph": ('kind="eager", cuda_graphs=false', "eager", "compiled"),
    "train.objective": ('kind="pretraining", temperature=3', "pretraining", "distillation or embedding"),
    "train.observers.0": ('kind="tensorboard", experiment="x"', "tensorboard", "mlflow"),
    "train.phases.0.schedule": ('kind="linear", decay=0.1', "linear", "wsd"),
    "train.precision": ('kind="bf16", initial_scale=4', "bf16", "fp16"),
    "train.spot_notice": ('kind="none", ends=true', "none", "azure or aws or gcp"),
}
"""For each key with kinds: a section with a key of another kind at its end, its kind, and the kinds that have the
key."""


def unions(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The keys of a section, and of those in it, that hold one of several kinds with different keys."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}.0" if "tuple" in str(field.annotation) else f"{prefix}{name}"
        sections = [each for each in members(field.annotation) if is_model(each)]
        if len({frozenset(each.model_fields) for each in sections if "kind" in each.model_fields}) > 1:
            yield key
        for each in sections:
            yield from unions(each, f"{key}.")


def refusal(recipe: Path, override: str) -> str:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(recipe, [override])
    return str(caught.value)


def test_there_is_a_case_of_every_union() -> None:
    assert set(unions(Recipe)) == OF_ANOTHER_KIND.keys()


@each_row("key", OF_ANOTHER_KIND)
def test_a_key_of_another_kind_is_reported_with_both_kinds(key: str, small_recipe: Path) -> None:
    section, kind, others = OF_ANOTHER_KIND[key]
    name = section.split(", ")[1].partition("=")[0]
    override = f"{key}={{{section}}}" if key[-1] != "0" else f"{key[:-2]}=[{{{section}}}]"
    assert refusal(small_recipe, override) == (
        f"command line: {key}.{name}: is a key of {key}.kind={others}, but {key}.kind is {kind}; set "
        f"{key}.kind={others.split()[0]}, or leave it out"
    )


def test_a_missing_kind_lists_the_kinds_with_the_given_keys(small_recipe: Path) -> None:
    says = "command line: train.objective: the key kind is missing; set it to 'distillation'"
    assert refusal(small_recipe, "train.objective.soft_weight=3") == says
    says = "command line: train.spot_notice: the key kind is missing; set it to one of 'azure', 'aws', 'gcp'"
    assert refusal(small_recipe, "train.spot_notice.ends=true") == says
    says = "command line: optim: the key kind is missing; set it to one of 'lamb', 'adamw', 'muon'"
    assert refusal(small_recipe, "optim={momentum=0.9, max_trust_ratio=10}") == says
