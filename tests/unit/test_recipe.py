"""The checks across sections, before any work; and that every field says what it is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.config import result_settings
from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import described_fields, members
from bertwright.model.bert.network import BertConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.pipeline.preview import is_unfinished
from bertwright.pipeline.run_folder import RunFolder

Load = Callable[..., Recipe]


def test_training_starts_only_from_what_is_finished(load: Load, trained: Path, tmp_path: Path) -> None:
    checkpoint = next((trained / "train" / "checkpoints").glob("step-*"))
    for path in (trained / "train", checkpoint):
        load(f"train.init_from={path}")
    for path, says in (
        (tmp_path / "nowhere", "nowhere is not a folder; give a finished train folder, or a folder in the format of"),
        (trained / "vocab", "was made by the stage 'vocab'; give a finished train folder"),
    ):
        with pytest.raises(RecipeError, match=f"command line: train.init_from: .*{says}"):
            load(f"train.init_from={path}")


def test_training_starts_from_no_weights_that_would_be_another_function(
    load: Load, trained: Path, tmp_path: Path
) -> None:
    """Of the number of heads the shapes of the weights say nothing."""
    shape = json.loads((trained / "train" / "model" / "config.json").read_text())
    heads, file = shape["num_attention_heads"], tmp_path / "bert.json"
    checkpoint = next((trained / "train" / "checkpoints").glob("step-*"))
    for path in (trained / "train", checkpoint):
        keys = (f"model.config={file}", f"train.init_from={path}")
        file.write_text(json.dumps(shape))
        load(*keys)
        file.write_text(json.dumps(shape | {"num_attention_heads": 2 * heads}))
        with pytest.raises(RecipeError, match=rf"num_attention_heads is {heads} in {path} but {2 * heads} in "):
            load(*keys)


def test_a_start_whose_network_cannot_be_told_is_refused(load: Load, trained: Path, tmp_path: Path) -> None:
    """Of the same size, so that its manifest alone does not show it."""
    train = shutil.copytree(trained / "train", tmp_path / "train")
    config = train / "model" / "config.json"
    config.write_text(config.read_text().replace("hidden_size", "hidden_sise"))
    with pytest.raises(RecipeError, match=r"train.init_from: .*config.json.*hidden_si"):
        load(f"train.init_from={train}")


def test_the_data_of_a_phase_are_examples_of_the_same_task(load: Load, trained: Path) -> None:
    data = f"train.phases.0.data={trained / 'examples'}"
    load(data)
    with pytest.raises(
        RecipeError, match=r"train.phases.0.data: .*plan=next-sentence, but this recipe has doc-sentences"
    ):
        load(data, "examples.plan=doc-sentences")
    with pytest.raises(RecipeError, match=r"train.phases.0.data: .*by the stage 'corpus'; give a folder of examples"):
        load(f"train.phases.0.data={trained / 'corpus'}")


def test_the_data_of_a_phase_are_examples_of_its_length_and_vocabulary(
    load: Load, trained: Path, tmp_path: Path
) -> None:
    data = f"train.phases.0.data={trained / 'examples'}"
    with pytest.raises(RecipeError, match=r"train.phases.0.data: .*has examples of 16 .*but this phase needs 32;"):
        load(data, "train.phases.0.length=32")
    with pytest.raises(RecipeError, match=r"but this phase needs 16-0\.5-1\.0;"):
        load(data, "train.phases.0.document_range=[0.5,1.0]")
    theirs = trained / "vocab" / "vocab.txt"
    given = ["vocab.size=", "vocab.alphabet_coverage=", f"vocab.file={theirs}"]
    load(data, *given)
    with pytest.raises(RecipeError, match=rf"another vocabulary than {theirs} .*set vocab\.file={theirs} and the text"):
        load(data, *given, "vocab.lower_case=true")


def test_a_run_folder_as_data_is_pointed_to_its_examples(load: Load, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=rf"phases.0.data: {trained} is a run folder; give its {trained}/examples$"):
        load(f"train.phases.0.data={trained}")
    shutil.copy(trained / "recipe.toml", tmp_path)
    with pytest.raises(RecipeError, match=rf"is a run folder; give its {tmp_path}/examples, once it is finished"):
        load(f"train.phases.0.data={tmp_path}")


def test_a_run_that_has_begun_does_not_need_what_it_started_from(small_recipe: Path, tmp_path: Path) -> None:
    overrides = [f"train.init_from={tmp_path / 'nowhere'}"]
    with pytest.raises(RecipeError):
        Recipe.load(small_recipe, overrides)
    assert Recipe.load(small_recipe, overrides, given=False).train.init_from == tmp_path / "nowhere"


def test_a_run_has_begun_only_once_there_is_a_checkpoint(tmp_path: Path) -> None:
    """A start that fails early leaves an empty folder of checkpoints and a log, and still needs what it starts from."""
    train = tmp_path / "train"
    assert not RunFolder(tmp_path).begun
    (train / "checkpoints" / ".step-000000001.draft").mkdir(parents=True)
    (train / "metrics.jsonl").touch()
    assert not RunFolder(tmp_path).begun and not is_unfinished(tmp_path)
    (train / "checkpoints" / "step-000000001").mkdir()
    assert RunFolder(tmp_path).begun and is_unfinished(tmp_path)
    shutil.rmtree(train / "checkpoints")
    assert not RunFolder(tmp_path).begun
    (train / "manifest.json").touch()
    assert RunFolder(tmp_path).begun


def test_patterns_that_name_no_tensor_are_refused_before_any_work(load: Load) -> None:
    group = "optim={{kind='adamw', groups=[{{pattern='{}', learning_rate_scale=0.5}}]}}".format
    load(group("bert.embeddings.*"))
    with pytest.raises(
        RecipeError, match=r"optim\.groups\.0\.pattern: 'bert\.embed' matches no tensor of this network; its"
    ):
        load(group("bert.embed"))


def test_pairs_need_two_segments(load: Load, small_recipe: Path, tmp_path: Path) -> None:
    values = json.loads((small_recipe.parent / "bert.json").read_bytes())
    path = tmp_path / "bert.json"
    path.write_text(json.dumps({**values, "type_vocab_size": 1}))
    with pytest.raises(
        RecipeError, match=r"model.config: .* has type_vocab_size 1, but sentence pairs have 2 segments"
    ):
        load(f"model.config={path}")
    load(f"model.config={path}", "examples.plan=doc-sentences")


def test_every_contradiction_is_shown_at_once(load: Load) -> None:
    with pytest.raises(RecipeError) as caught:
        load("train.phases.0.length=64", "evaluate.length=12", "train.init_from=nowhere")
    keys = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert keys == ["evaluate.length", "train.phases.0.length", "train.init_from"]


def test_what_works_on_whole_weights_is_refused_where_ranks_hold_parts(load: Load) -> None:
    keys = (
        "train.averaging=ema",
        "train.phases.0.micro_batch=auto",
        "optim.kind=lamb",
        "optim.clip_before_reduction=true",
    )
    with pytest.raises(RecipeError) as caught:
        load("train.engine=fsdp", *keys)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "train.averaging", "optim.clip_before_reduction", "train.phases.0.micro_batch"
    ]  # fmt: skip
    assert all("train.engine=fsdp each rank has only parts of them; set train.engine=zero" in line for line in lines)
    load("train.engine=zero", *keys)
    with pytest.raises(
        RecipeError, match=r"optim\.kind: .* with train\.engine=deepspeed each rank .*train\.engine=zero"
    ):
        load("train.engine=deepspeed", "optim.kind=lamb")
    load("train.engine=deepspeed", "optim.kind=adamw")
    load("train.engine=deepspeed", "train.precision=fp16")
    average = "train.averaging=ema"
    load("train.engine=deepspeed", average)
    for parts in ('train.engine={kind="deepspeed",stage=3}', "train.precision=fp16"):
        with pytest.raises(
            RecipeError, match=r"train\.averaging: .* needs whole tensors, but with train\.engine=deepspeed"
        ):
            load("train.engine=deepspeed", parts, average)


@each_row(
    ("override", "refused"),
    [
        (
            "train.precision=bf32",
            "train.precision: bf32 is available only in torch, but .* computes in float32; set train.precision=fp32",
        ),
        ("train.attention=varlen", "train.attention: varlen is a kernel for GPUs, .*; set train.attention=auto"),
        (
            "train.attention=sequences",
            "train.attention: sequences makes different calls for every batch, but train.graph=ortm",
        ),
        (
            "train.device=cuda",
            "train.device: cuda: .* computes on a CPU; set train.device=cpu, or train.graph=compiled",
        ),
        ("train.checkpoint_activations=true", "train.checkpoint_activations: makes torch compute layers again"),
        (
            "train.phases.0.micro_tokens=400",
            "train.phases.0.micro_tokens: 400 .*=ortmodule needs fixed shapes; set micro_b",
        ),
        ("train.engine=fsdp", "train.graph: its value needs whole tensors, .*; set train.engine=zero"),
        ("model.kind=modern", "model.kind: modern has layer norms without biases, .*; set train.graph=eager"),
    ],
)
def test_what_onnx_runtime_cannot_run_is_refused_by_its_key(override: str, refused: str, load: Load) -> None:
    fitting = ["train.phases.0.micro_batch="] if "micro_tokens" in override else []
    fitting += ["examples.plan=doc-sentences"] if "modern" in override else []
    with pytest.raises(RecipeError, match=refused):
        load("train.graph=ortmodule", override, *fitting)
    load("train.graph=ortmodule", "train.engine=zero")


def test_a_batch_smaller_than_the_ranks_is_a_contradiction(load: Load) -> None:
    with pytest.raises(RecipeError, match=r"train.phases.0.batch: 8 is smaller than micro_batch 4 x 400 ranks"):
        load().check(ranks=400)


def test_a_vocabulary_that_is_not_there_is_the_fault_of_its_own_key(load: Load) -> None:
    with pytest.raises(RecipeError, match=r"^command line: vocab.file: nowhere.txt cannot be read: No such"):
        load("vocab.size=", "vocab.alphabet_coverage=", "vocab.file=nowhere.txt")
    with pytest.raises(RecipeError, match=r"^command line: vocab: vocab.size and vocab.file exclude each other"):
        load("vocab.file=nowhere.txt")


def test_the_resolved_recipe_says_the_same(load: Load, tmp_path: Path) -> None:
    recipe = load("vocab.size=150")
    recipe.write(tmp_path / "recipe.toml")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


def test_a_recipe_that_an_editor_marked_is_left_as_it_is(load: Load, tmp_path: Path) -> None:
    load().write(tmp_path / "recipe.toml")
    marked = b"\xef\xbb\xbf# mine\r\n" + (tmp_path / "recipe.toml").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "recipe.toml").write_bytes(marked)
    load().write(tmp_path / "recipe.toml")
    assert (tmp_path / "recipe.toml").read_bytes() == marked


def test_a_warm_up_in_steps_is_read_again(load: Load, tmp_path: Path) -> None:
    recipe = load("train.phases.0.warmup=4", "train.phases.0.steps=10")
    recipe.write(tmp_path / "recipe.toml")
    assert "warmup = 4\n" in (tmp_path / "recipe.toml").read_text() and Recipe.load(tmp_path / "recipe.toml") == recipe


def test_the_resolved_recipe_has_no_secrets(load: Load, tmp_path: Path) -> None:
    urls = ["https://me:secret@host/a.bz2?sv=1&sig=secret", "https://host/get?token=secret", "s3://texts/part-?.txt"]
    recipe = load(f"corpus.source={json.dumps(urls)}")
    recipe.write(tmp_path / "recipe.toml")
    assert "secret" not in (tmp_path / "recipe.toml").read_text()
    paths = [source.path for source in Recipe.load(tmp_path / "recipe.toml").corpus.source]
    assert [paths[0], paths[2]] == ["https://host/a.bz2", urls[2]]
    assert [source.path for source in recipe.corpus.source] == urls


def sections(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    found = {model.__name__: model}
    for field in model.model_fields.values():
        for c in members(field.annotation):
            if isinstance(c, type) and issubclass(c, BaseModel):
                found |= sections(c)
    return found


NETWORKS = (BertConfig, ModernConfig, DistilBertConfig)
SECTIONS = sections(Recipe) | {network.__name__: network for network in NETWORKS}


@each_row("name", SECTIONS)
def test_every_field_has_a_description_of_its_own(name: str) -> None:
    told = [field.description or "" for field in described_fields(SECTIONS[name]).values()]
    assert all(text.strip() for text in told)
    assert len(set(told)) == len(told), "two fields are described in the same words"
    assert (SECTIONS[name].__doc__ or "").strip()


def test_the_sections_were_found() -> None:
    assert {"PhaseConfig", "FilterConfig", "LambConfig", "AdamWConfig", "ExportConfig"} <= set(SECTIONS)


FLAT = ("model.config=", "examples.plan=full-sentences")


@each_row("kind", ["modern", "distilbert"])
def test_a_family_without_segments_takes_no_pairs(load: Load, kind: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load(f"model.kind={kind}", "model.config=", "model.size=tiny", "train.phases.0.length=2048")
    first, *others = str(caught.value).splitlines()
    assert first == (
        f"command line: model.kind: {kind} has no segments and no next-sentence head, but examples.plan=next-sentence "
        "makes pairs; set examples.plan=full-sentences or doc-sentences, or model.kind=bert"
    )
    assert len(others) == 1 and "train.phases.0.length: 2048 is longer than the model's" in others[0]
    for plan in ("full-sentences", "doc-sentences"):
        recipe = load(f"model.kind={kind}", "model.config=", "model.size=tiny", f"examples.plan={plan}")
        assert recipe.network().family == kind and not recipe.network().next_sentence


def test_a_model_without_a_kind_is_a_bert_with_the_fingerprint_of_before(load: Load) -> None:
    unsaid, said = load(*FLAT, "model.size=tiny"), load(*FLAT, "model.size=tiny", "model.kind=bert")
    assert unsaid.model == said.model and unsaid.model.kind == "bert"
    assert result_settings(unsaid.model, defaults=False) == {"size": "tiny"}
    modern = load(*FLAT, "model.size=tiny", "model.kind=modern")
    assert result_settings(modern.model, defaults=False) == {"kind": "modern", "size": "tiny"}


@each_row(
    ("overrides", "message"),
    [
        (("model.kind=gpt",), "model: 'gpt' is not one of 'bert', 'modern', 'distilbert'; use one of these"),
        (("model.kind=modrn",), "did you mean 'modern'?"),
        (("model.kind=distilbert", "model.size=large"), "model.size: 'large' is not 'tiny', 'mini', 'small', 'medium'"),
        (("model.kind=modern", "model.szie=tiny"), "model.szie: unknown key 'szie'; did you mean 'size'?"),
        (("model.kind=modern",), "model: give exactly one of size (tiny, mini, small, medium, base, large) and config"),
    ],
)  # fmt: skip
def test_mistakes_of_a_family_are_said_by_its_keys(load: Load, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load(*FLAT, *overrides)
    assert message in str(caught.value)
