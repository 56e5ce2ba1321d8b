"""What `check --explain` says of keys and of the originals' parameters."""

import pytest

from bertwright import Recipe
from bertwright.check import NOT_OFFERED, ORIGINALS, describe_key, environment
from bertwright.core.errors import RecipeError


@pytest.mark.parametrize("name", ORIGINALS)
def test_every_parameter_of_the_originals_leads_to_a_key(name: str) -> None:
    facts = describe_key(Recipe, f"--{name}")
    assert (facts["original"], facts["key"]) == (f"--{name}", ORIGINALS[name][0])
    assert facts["meaning"] and facts.get("conversion", "") == ORIGINALS[name][1]


def test_conversions_are_told() -> None:
    assert "times the GPUs" in describe_key(Recipe, "train_batch_size")["conversion"]
    assert (
        "train_batch_size / gradient_accumulation_steps"
        in describe_key(Recipe, "gradient_accumulation_steps")["conversion"]
    )
    assert "strips accents" in describe_key(Recipe, "do_lower_case")["conversion"]


@pytest.mark.parametrize(
    ("name", "key", "default"),
    [
        ("input_sentence_size", "vocab.trainer.input_sentence_size", 100_000_000),
        ("character_coverage", "vocab.trainer.character_coverage", 0.9999),
        ("shuffle_input_sentence", "vocab.trainer.shuffle", True),
        ("model_type", "vocab.trainer.model", "bpe"),
        ("SAMPLED_SENTENCE_NUM", "vocab.sample_bytes", 150_000_000),
        ("fraction_test_set", "examples.heldout", 0.01),
        ("n_training_shards", "corpus.shards", None),
        ("num_shards", "corpus.shards", None),
        ("segmentation_method", "corpus.split.command", ()),
        ("word-chars", "corpus.filter.alphabet", ""),
    ],
)
def test_parameters_of_the_data_pipelines_lead_to_their_keys(name: str, key: str, default: object) -> None:
    facts = describe_key(Recipe, f"--{name}")
    assert (facts["key"], facts["default"]) == (key, default)


def test_the_sources_of_text_are_a_section_of_their_own() -> None:
    facts = describe_key(Recipe, "input_files")
    assert facts["key"] == "corpus.source" and {"path", "format", "weight"} <= set(facts["keys"])
    assert "32101 here" in describe_key(Recipe, "vocab_size")["conversion"]


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_what_is_not_offered_is_said(name: str) -> None:
    assert describe_key(Recipe, name)["meaning"].startswith("not offered: training computes in float32 only")


def test_keys_are_grouped_by_kind() -> None:
    keys = describe_key(Recipe, "optim")["keys"]
    assert list(keys) == ["lamb", "adamw"]
    assert "bias_correction" in keys["lamb"] and "bias_correction" not in keys["adamw"]
    assert describe_key(Recipe, "optim.kind")["default"] == "lamb | adamw"
    assert describe_key(Recipe, "vocab")["keys"][:2] == ["size", "file"]


def test_a_key_has_type_default_and_role() -> None:
    facts = describe_key(Recipe, "train.keep")
    assert (facts["type"], facts["default"], facts["role"]) == ("int", 3, "how")
    assert describe_key(Recipe, "train.phases.0.length")["default"] == "required"
    assert describe_key(Recipe, "train.phases.0.steps")["role"] == "extendable"


def test_a_mistyped_key_is_an_error_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match="did you mean 'dupe_factor'"):
        describe_key(Recipe, "dupe_facto")
    with pytest.raises(RecipeError, match="the keys here are size, file"):
        describe_key(Recipe, "vocab.zzzzzz")


def test_the_environment_is_described() -> None:
    facts = environment()
    assert facts["processors"] >= 1 and facts["packages"]["torch"][0].isdigit()
