"""What `check --explain` says of keys and of other programs' parameters."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest
import transformers
from pydantic import BaseModel
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import is_model, members
from bertwright.explain import Original, explain, originals, where_is
from bertwright.optim.config import OptimConfig, ScheduleConfig
from bertwright.recipe_keys import find, keys
from bertwright.train.averaging.config import AveragingConfig
from bertwright.train.engine.config import EngineConfig
from bertwright.train.graph.config import GraphConfig
from bertwright.train.machine.config import SpotNoticeConfig
from bertwright.train.monitor.observers.config import ObserverConfig
from bertwright.train.precision.config import PrecisionConfig

KINDS = {
    "train.engine": EngineConfig,
    "train.precision": PrecisionConfig,
    "train.graph": GraphConfig,
    "train.averaging": AveragingConfig,
    "train.observers": ObserverConfig,
    "train.spot_notice": SpotNoticeConfig,
}
"""Keys of unions whose meaning names the kinds, with the union."""
ALL = [original for group in originals().values() for original in group]
PHASE = "train.phases.0"


@each_row("number", ["0", "11"])
def test_a_number_is_no_key(number: str) -> None:
    with pytest.raises(RecipeError, match=rf"--explain {number}: there is no key '{number}'; the keys here are"):
        explain(Recipe, number)


def kinds_of(union: Any) -> list[str]:
    return [member.model_fields["kind"].default for member in members(union) if is_model(member)]


@each_row("key", KINDS)
def test_a_union_is_explained_with_each_kind_and_its_meaning_names_no_other(key: str) -> None:
    facts = explain(Recipe, key)
    assert list(facts["keys"]) == kinds_of(KINDS[key])
    named = set(re.findall(r"`(\w+)`", facts["meaning"])) - {key.rpartition(".")[2] for key in keys_and_kinds()}
    assert named <= set(kinds_of(KINDS[key]))


def test_the_data_of_a_phase_may_be_labelled_texts() -> None:
    assert "labelled texts" in explain(Recipe, f"{PHASE}.data")["meaning"]


@each_row("original", ALL)
def test_every_parameter_leads_to_keys_that_exist_or_says_why_there_is_none(original: Original) -> None:
    facts = explain(Recipe, f"--{original.name}")
    said = facts["elsewhere"][original.program]
    for key in original.keys:
        assert explain(Recipe, key)["meaning"], key
        assert facts.get("key") in (key, original.name) or key in facts
    assert original.keys or (original.note and said == f"no key corresponds to it: {original.note}")
    assert original.note in said


def test_no_name_is_given_twice_for_one_program() -> None:
    names = [(original.program, original.name.replace("-", "_")) for original in ALL]
    assert len(names) == len(set(names))


def test_the_options_of_the_programs_are_there() -> None:
    """Counted on NVIDIA's command line and launcher, ONNX Runtime's, Intel's, and transformers' own fields."""
    programs = {original.program.partition(" ")[0] for original in ALL}
    assert {"NVIDIA", "ONNX", "Intel", "Google", "transformers"} <= programs
    known = {o.name for o in ALL if o.program == "transformers TrainingArguments"}
    fields = {field.name for field in dataclasses.fields(transformers.TrainingArguments)}
    assert len(known & fields) >= 50


DENIALS = re.compile(r"\b(?:no|not|never|always|nobody|cannot)\b", re.IGNORECASE)
DENIED = {
    "adafactor": r"adafactor",
    "allreduce_post_accumulation": r"allreduce|accumulat",
    "CODEDIR": r"code_?dir",
    "dense_seq_output": r"dense",
    "do_eval": r"^(do_eval|score)$",
    "group_by_length": r"group_by",
    "init_tf_checkpoint": r"tensorflow|_tf_",
    "label_smoothing_factor": r"smooth",
    "low_cpu_mem_usage": r"low_cpu|mem_usage",
    "neftune_noise_alpha": r"neft|noise",
    "no_dense_sequence_output": r"dense",
    "optim_args": r"^(optim_args|sgd|adagrad)$",
    "optim_target_modules": r"galore|apollo",
    "overwrite_cache": r"overwrite",
    "parallelism_config": r"tensor_parallel|parallelism",
    "remove_unused_columns": r"columns",
    "streaming": r"stream",
    "token": r"^(hub_)?token$",
    "tp_size": r"^tp_|tensor_parallel",
    "trust_remote_code": r"remote_code",
    "use_env": r"_env$",
    "use_fast_tokenizer": r"fast",
}
"""What is said not to be there, and the names that a key or a kind for it would have."""


def keys_and_kinds(model: type[BaseModel] = Recipe) -> set[str]:
    """The last parts of all keys, and the kinds of their sections."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found |= {name} | ({field.default} if name == "kind" else set())
        for inner in members(field.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found |= keys_and_kinds(inner)
    return found


def test_what_is_said_not_to_be_there_is_not() -> None:
    """A key that is added takes what was said of its absence with it: the names it would have are named here."""
    without_key = [original for original in ALL if not original.keys]
    assert {original.name for original in without_key if DENIALS.search(original.note)} == set(DENIED)
    names = keys_and_kinds()
    assert not {original.name for original in without_key} & names, "a key of that very name"
    assert {
        name: named for name, pattern in DENIED.items() if (named := {n for n in names if re.search(pattern, n)})
    } == {}


@each_row(
    ("union", "options"),
    [
        (ScheduleConfig, ["lr_scheduler_type"]),
        (ObserverConfig, ["report_to"]),
        (PrecisionConfig, ["precision", "PRECISION", "fp16", "bf16", "tf32", "fp8"]),
        (GraphConfig, ["torch_compile", "disable_jit_fusions"]),
    ],
)
def test_who_asks_by_the_name_of_another_program_is_told_every_kind(union: Any, options: list[str]) -> None:
    for option in options:
        key = next(original.keys[0] for original in ALL if original.name == option)
        assert list(explain(Recipe, key)["keys"]) == kinds_of(union)


@each_row(
    ("name", "key", "difference"),
    [
        ("train_batch_size", f"{PHASE}.batch", "times the number of GPUs"),
        ("gradient_checkpointing", "train.checkpoint_activations", "the same"),
        ("torch_compile", "train.graph", "`compiled`"),
        ("min_learning_rate", f"{PHASE}.schedule.floor", "a share of the peak"),
        ("do_lower_case", "vocab.lower_case", "strips accents"),
        ("vocab_size", "vocab.size", "32101 here"),
        ("json_summary", None, "metrics.jsonl"),
        ("adam_epsilon", "optim.eps", "1e-8 in the original"),
        ("mlm_probability", f"{PHASE}.masking.rate", ""),
        ("phase2", "train.phases", "second [[train.phases]]"),
    ],
)
def test_differences_are_told(name: str, key: str | None, difference: str) -> None:
    facts = explain(Recipe, name)
    assert facts.get("key") == key
    assert any(difference in said for said in facts["elsewhere"].values())


def test_one_name_of_several_programs_is_told_for_each() -> None:
    facts = explain(Recipe, "gradient_accumulation_steps")
    assert {f"{PHASE}.micro_batch", f"{PHASE}.batch"} <= facts.keys()
    said = facts["elsewhere"]
    assert said["NVIDIA run_pretraining.py"].startswith(f"{PHASE}.micro_batch: micro_batch = train_batch_size")
    assert said["transformers TrainingArguments"].startswith(f"{PHASE}.batch: batch = per_device")


def test_the_last_part_of_a_key_is_enough() -> None:
    assert explain(Recipe, "short_seq_prob")["key"] == "examples.short_seq_prob"
    assert explain(Recipe, "bias_correction")["key"] == "optim.bias_correction"
    assert {"corpus.seed", "vocab.seed", "examples.seed", "train.seed"} <= explain(Recipe, "seed").keys()


def test_keys_are_grouped_by_kind() -> None:
    keys = explain(Recipe, "optim")["keys"]
    assert list(keys)[:3] == ["lamb", "adamw", "muon"] and list(keys) == kinds_of(OptimConfig)
    assert "bias_correction" in keys["lamb"] and "bias_correction" not in keys["adamw"]
    assert explain(Recipe, "optim.kind")["default"] == " or ".join(keys)
    assert explain(Recipe, "vocab")["keys"][:2] == ["size", "file"]


def test_a_section_that_every_kind_holds_is_no_choice() -> None:
    assert explain(Recipe, "optim.groups")["keys"] == ["pattern", "learning_rate_scale", "weight_decay"]
    assert "Pattern of tensor names" in explain(Recipe, "optim.groups.0.pattern")["meaning"]
    assert list(explain(Recipe, "train.averaging")["keys"]) == ["none", "ema", "last"]


def test_a_key_has_type_default_and_role() -> None:
    facts = explain(Recipe, "train.keep_checkpoints")
    assert (facts["type"], facts["default"], facts["role"]) == ("a whole number, at least 1", 3, "runtime_only")
    assert explain(Recipe, "train.phases.micro_batch")["type"] == "a whole number, at least 0 or auto"
    assert explain(Recipe, "train.phases.0.length")["default"] == "required"
    assert explain(Recipe, "train.phases.0.steps")["role"] == "extendable"


def test_types_are_said_in_words_of_no_program() -> None:
    def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
        for name, field in model.model_fields.items():
            sections = [each for each in members(field.annotation) if is_model(each)]
            yield from (
                (key for each in sections for key in leaves(each, f"{prefix}{name}."))
                if sections
                else ([f"{prefix}{name}"])
            )

    said = {key: explain(Recipe, key)["type"] for key in dict.fromkeys(leaves(Recipe))}
    python = re.compile(
        r"\b(?:int|str|float|bool|None|NoneType|Literal|Union|Optional|tuple|dict|Path|Annotated)\b|[|\[<]"
    )
    assert len(said) > 150 and not {key: words for key, words in said.items() if python.search(words)}
    expected = {
        "corpus.filter.languages": "a list of texts",
        "optim.betas": "a list of 2 numbers, each at least 0, below 1",
        "train.init_from": "a path",
        "model.kind": "one of bert, modern, distilbert",
        "model.size": "one of tiny, mini, small, medium, base, large",
        "train.seed": "a whole number, at least 0, at most 9,223,372,036,854,775,807",
        "train.attention": "one of auto, sequences, padded, varlen",
    }
    # Kinds of one's own come last.
    assert {key: words for key, words in expected.items() if not said[key].startswith(words)} == {}


def test_every_key_is_explained_by_its_name_its_end_and_its_kinds() -> None:
    for key in dict.fromkeys(keys(Recipe)):
        facts = explain(Recipe, key)
        assert facts["key"] == key and facts["meaning"] and ("keys" in facts or {"type", "default"} <= facts.keys()), (
            key
        )
        parts = [part for part in key.split(".") if part != "0"]
        for count in range(1, len(parts)):
            said = explain(Recipe, ".".join(parts[count:]))
            assert said.get("key") in (key, ".".join(parts[count:])) or key in said, key
        found = find(Recipe, key)
        for kind in filter(None, found.kinds):
            above, _, last = key.rpartition(".")
            said = explain(Recipe, f"{above}.{kind}.{last}")
            assert said["key"] == key and said["only with"][f"{above}.kind"] == kind and "otherwise" not in said


@each_row(
    ("name", "key", "entry", "says"),
    [
        ("masking.unit", f"{PHASE}.masking.unit", "type", "one of tokens, words, spans"),
        ("train.phases[1].masking.unit", "train.phases.1.masking.unit", "default", "tokens"),
        ("phases.1.masking.unit", "train.phases.1.masking.unit", "default", "tokens"),
        ("schedule.power", f"{PHASE}.schedule.power", "only with", {f"{PHASE}.schedule.kind": "poly or poly_nvidia"}),
        ("optim.eps", "optim.eps", "otherwise", "muon"),
        ("train.engine.fsdp", "train.engine", "meaning", "fully_shard"),
        ("train.engine.fsdp.reduction", "train.engine.reduction", "only with", {"train.engine.kind": "fsdp"}),
        ("train.objective.words.cause", "train.objective.words.cause", "type", "a table"),
        ("train.engine", "train.engine", "default", "auto"),
    ],
)
def test_a_key_at_any_depth_and_in_any_kind(name: str, key: str, entry: str, says: Any) -> None:
    facts = explain(Recipe, name)
    assert facts["key"] == key
    assert facts[entry] == says or says in facts[entry]


@each_row(
    ("name", "near"),
    [
        ("examples.masking.unit", f"{PHASE}.masking.unit"),
        ("masking.unitt", f"{PHASE}.masking.unit"),
        ("train.phases.0.maskng", f"{PHASE}.masking"),
        ("optim.lamb.weight_decy", "optim.weight_decay"),
        ("train.seed.0", "train.seed"),
    ],
)
def test_the_nearest_key_of_a_slip_at_any_depth(name: str, near: str) -> None:
    with pytest.raises(RecipeError, match=f"there is no key '{name}'; did you mean '{near}'"):
        explain(Recipe, name)


@each_row(
    ("short", "keys"),
    [
        ("lr", ["train.phases.0.learning_rate"]),
        ("wd", ["optim.weight_decay", "optim.groups.0.weight_decay"]),
        ("bs", ["train.phases.0.batch"]),
        ("warm", ["train.phases.0.warmup", "train.phases.0.batch_warmup"]),
    ],
)
def test_a_short_form_leads_to_the_keys_it_may_stand_for(short: str, keys: list[str]) -> None:
    facts = explain(Recipe, short)
    assert facts.get("key") == keys[0] or set(keys) <= facts.keys()


def test_a_mistyped_key_is_an_error_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match="there is no key 'dupe_facto'; did you mean 'dupe_factor'"):
        explain(Recipe, "dupe_facto")
    with pytest.raises(RecipeError, match="the keys here are size, file"):
        explain(Recipe, "vocab.zzzzzz")


def test_where_a_misplaced_name_belongs() -> None:
    assert where_is(Recipe, "weight_decay") == "it is called optim.weight_decay or optim.groups.0.weight_decay here."
    assert where_is(Recipe, "per_device_train_batch_size") == f"it is called {PHASE}.micro_batch here."
    assert where_is(Recipe, "fp16") == "it is called train.precision here."
    assert where_is(Recipe, "fp8") == "it is called train.precision here."
    assert where_is(Recipe, "fsdp") == "it is called train.engine here."
    assert where_is(Recipe, "group_by_length").startswith("no key corresponds to it: ")
    assert where_is(Recipe, "zzz") == ""
