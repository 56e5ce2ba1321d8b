"""What is told of a recipe before it runs: sources, codes, devices, packages, files that it names."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import save_file
from tests.rows import each_row
from torch import zeros

from bertwright import Recipe, run
from bertwright.check.check_recipe import check_recipe
from bertwright.check.machine import resources
from bertwright.check.machine.computing import computing, instructions, precision
from bertwright.check.recipe import packages as recipe_packages
from bertwright.check.verdict import Verdict, exit_code, from_exception, refuse, verdict_rows
from bertwright.cli import main
from bertwright.core.errors import DataError, MissingExtraError, RecipeError
from bertwright.core.numbers import size_of
from bertwright.estimate import machine_facts
from bertwright.estimate.machine_facts import OtherMachine, TorchBuild, torch_build
from bertwright.pipeline.stage import STAGES
from bertwright.sample import SMALL
from bertwright.train.graph import packages
from bertwright.train.machine import cpu_isa

Load = Callable[..., Recipe]
OnGpu = Callable[[tuple[int, int] | None], None]


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> OnGpu:
    """`on_gpu((9, 0))`: this machine has a GPU of that compute capability, and a torch for it."""

    def have(capability: tuple[int, int] | None) -> None:
        monkeypatch.setattr(machine_facts, "torch_build", lambda: TorchBuild("2.13.0+cu128", True))
        monkeypatch.setattr(machine_facts, "gpu_memory", lambda: (80 * 10**9,))
        monkeypatch.setattr(machine_facts, "gpu_capability", lambda: capability)

    return have


def found(recipe: Recipe, out: Path, about: str, stages: tuple[str, ...] = tuple(STAGES)) -> list[Verdict]:
    return [verdict for verdict in check_recipe(recipe, out, stages) if verdict.about == about]


def test_a_recipe_without_faults_has_none(load: Load, tmp_path: Path) -> None:
    verdicts = check_recipe(load(), tmp_path / "run", tuple(STAGES))
    assert {verdict.level for verdict in verdicts} == {"ok"} and exit_code(verdicts) == 0


def test_sources_are_named_with_what_they_are(load: Load, tmp_path: Path) -> None:
    (source,) = found(load(f"corpus.source={SMALL}"), tmp_path / "run", "corpus.source")
    assert source.level == "ok" and source.text.startswith("small (dump, bz2, 1 file, ")
    paths = f'["{tmp_path}/no.txt", "sample"]'
    first, second = (found(load(f"corpus.source={paths}"), tmp_path / "run", f"corpus.source.{n}") for n in range(2))
    assert first[0].kind.exit_code == 3 and "no.txt: No such file or directory." in first[0].text
    assert first[0].remedy == "Set corpus.source to the path of a file that you have permission to read."
    assert second[0].level == "ok"
    (remote,) = found(load("corpus.source=https://a.b/c.bz2"), tmp_path / "run", "corpus.source")
    assert remote.level == "ok" and "it is opened when the stage starts" in remote.text


def test_a_network_unknown_to_transformers_cannot_be_exported(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(load(), tmp_path / "run", "model.kind") == []
    monkeypatch.setattr("bertwright.model.config.PEERS", ("modern",))
    (refused,) = found(load(), tmp_path / "run", "model.kind")
    assert refused.level == "error"
    assert refused.text == "model.kind = bert: stock transformers has no such network to export to, only modern."
    assert refused.remedy.endswith("--until evaluate.")
    assert found(load(), tmp_path / "run", "model.kind", ("train", "evaluate", "report")) == []


def test_an_unknown_language_is_a_warning(load: Load, tmp_path: Path) -> None:
    (verdict,) = found(load("corpus.language=qqx"), tmp_path / "run", "corpus.language")
    assert verdict.level == "warning" and "qqx is not the code of a Wikipedia" in verdict.text


def test_another_lower_case_is_a_warning(load: Load, tmp_path: Path) -> None:
    turkish = load("corpus.language=tr", "vocab.lower_case=true")
    (verdict,) = found(turkish, tmp_path / "run", "vocab.lower_case")
    assert verdict.level == "warning" and "I becomes i (not ı)" in verdict.text
    assert found(load("corpus.language=tr"), tmp_path / "run", "vocab.lower_case") == []


def test_files_and_programs_that_are_not_there(load: Load, tmp_path: Path) -> None:
    recipe = load(f'corpus.contamination=["{tmp_path}/no.txt"]', f"corpus.wikitext.templates={tmp_path}/no.toml")
    for key in ("corpus.contamination.0", "corpus.wikitext.templates"):
        (verdict,) = found(recipe, tmp_path / "run", key)
        assert verdict.level == "error" and verdict.kind is DataError
    (verdict,) = found(
        load('corpus.split.command=["no-such-program"]', 'corpus.source.lines="paragraphs"'),
        tmp_path / "run",
        "corpus.split.command",
    )
    assert verdict.text == "there is no program 'no-such-program'."


@each_row(
    ("build", "gpus", "says"),
    [
        (TorchBuild("2.13.0+cpu", False), (8 << 30,), "torch 2.13.0+cpu is a build for the CPU."),
        (TorchBuild("2.13.0+cu128", True), (), "torch finds no GPU here."),
    ],
)
def test_a_requested_gpu_must_exist(
    build: TorchBuild, gpus: tuple[int, ...], says: str, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_facts, "torch_build", lambda: build)
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: gpus)
    monkeypatch.setattr(machine_facts, "gpu_capability", lambda: None)
    (verdict,) = found(load("train.device=cuda"), tmp_path / "run", "train.device")
    assert verdict.level == "error" and verdict.text == f"train.device = cuda, but {says}"
    assert not found(load("train.device=cuda"), tmp_path / "run", "train.device", ("corpus",))
    monkeypatch.setattr(machine_facts, "torch_build", lambda: TorchBuild("2.13.0+cu128", True))
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: (80 * 10**9,))
    (verdict,) = found(load("train.device=cuda"), tmp_path / "run", "train.device")
    assert (verdict.level, verdict.text) == ("ok", "a GPU (80 GB)")


@each_row(
    ("override", "units", "level", "says"),
    [
        ("train.precision=bf16", (), "error", "train.precision = bf16, but this CPU has no unit for it"),
        ("train.precision={kind='bf16', allow_slow=true}", (), "ok", "bf16, by software"),
        ("train.precision=bf16", ("amx_bf16", "avx512_bf16"), "ok", "bf16, by amx_bf16, avx512_bf16"),
        ("train.precision=tf32", ("amx_bf16",), "error", "a CPU has no tensor cores for it"),
        ("train.precision=fp16", ("amx_bf16",), "error", "a CPU takes many times as long"),
        ("train.precision=bf32", ("avx512_bf16",), "error", "bf32, but this CPU has no unit for it (AMX)"),
        ("train.precision=bf32", ("amx_bf16",), "ok", "bf32, by amx_bf16"),
        ("train.seed=1", (), "ok", "fp32: no units for bfloat16"),
        ("train.seed=1", ("amx_bf16",), "ok", "bf16, by amx_bf16, if the first start measures that it is 1.2 times"),
        ("train.cpu_isa=avx512", ("avx512_bf16",), "ok", "fp32: no units for bfloat16"),
    ],
)
def test_a_precision_needs_units_for_it(
    override: str,
    units: tuple[str, ...],
    level: str,
    says: str,
    load: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_facts, "bf16_units", lambda: units)
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: ())
    (verdict,) = found(load(override), tmp_path / "run", "train.precision")
    assert verdict.level == level and says in verdict.text
    assert verdict.level == "ok" or "fp32" in verdict.remedy
    assert not found(load(override), tmp_path / "run", "train.precision", ("corpus",))


@pytest.mark.parametrize(
    ("override", "capability", "level", "says"),
    [
        (
            "train.precision=tf32",
            (7, 5),
            "error",
            "capability 7.5, and tensor cores for it need at least 8.0 (NVIDIA Ampere).",
        ),
        ("train.precision=tf32", (8, 0), "ok", "tf32, on a GPU of compute capability 8.0"),
        (
            "train.precision=bf16",
            (7, 0),
            "error",
            "capability 7.0, and units for it need at least 8.0 (NVIDIA Ampere).",
        ),
        ("train.precision=bf32", (9, 0), "error", "bf32, but it is for CPUs, and a GPU will train."),
        ("train.precision={kind='bf16', allow_slow=true}", (7, 0), "ok", "bf16, on a GPU of compute capability 7.0"),
        ("train.precision=fp16", (7, 0), "ok", "fp16, on a GPU of compute capability 7.0"),
        ("train.precision=bf16", None, None, ""),
        ("train.seed=1", (9, 0), "ok", "bf16: this GPU has compute capability 9.0"),
        ("train.seed=1", (7, 5), "ok", "fp16: this GPU has compute capability 7.5, and units for bf16 need at least"),
        ("train.seed=1", (6, 1), "ok", "fp32: this GPU has compute capability 6.1"),
        ("train.engine=deepspeed", (7, 0), "ok", "fp32: this GPU has compute capability 7.0, without bf16"),
        ("train.seed=1", None, "ok", "bf16: this is a GPU"),
    ],
)
def test_a_gpu_needs_units_for_its_precision(
    override: str, capability: tuple[int, int] | None, level: str | None, says: str, load: Load, on_gpu: OnGpu
) -> None:
    on_gpu(capability)
    verdicts = list(precision(load(override, "train.device=auto"), ("train",)))
    assert [verdict.level for verdict in verdicts] == ([level] if level else [])
    for verdict in verdicts:
        assert says in verdict.text and ("to run it here, set train.precision=" in verdict.remedy) == (level == "error")
    (processor,) = precision(load("train.device=cpu", "train.precision=tf32"), ("train",))
    assert "a CPU has no tensor cores" in processor.text and processor.remedy == "Set train.precision=fp32."


def test_what_compiles_must_be_there(
    load: Load, tmp_path: Path, on_gpu: OnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load("train.graph=compiled", "train.device=auto", "train.phases.0.micro_batch=4")
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: ())
    monkeypatch.setenv("CXX", "c++-99")
    (verdict,) = found(recipe, tmp_path / "run", "train.graph")
    assert verdict.level == "error"
    assert verdict.sentence == (
        "train.graph = compiled needs a C++ compiler (c++-99). Install it, or set train.graph=eager."
    )
    assert not found(recipe, tmp_path / "run", "train.graph", ("corpus",))
    on_gpu((9, 0))
    (verdict,) = found(recipe, tmp_path / "run", "train.graph")
    assert "train.graph = compiled needs Triton, which torch for GPUs comes with" in verdict.text
    monkeypatch.setattr(packages, "find_spec", lambda name: object())
    monkeypatch.delenv("CC", raising=False)
    (verdict,) = found(recipe, tmp_path / "run", "train.graph")
    assert verdict.text == "train.graph = compiled needs a C compiler (gcc or clang)."
    monkeypatch.setattr(packages.shutil, "which", lambda name: name)
    monkeypatch.setattr(packages, "python_header", lambda: Path(__file__))
    assert not found(recipe, tmp_path / "run", "train.graph")


def test_onnx_runtime_must_be_one_that_trains(
    load: Load, tmp_path: Path, on_gpu: OnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load("train.graph=ortmodule", "train.device=auto")
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: ())
    (verdict,) = found(recipe, tmp_path / "run", "train.graph")
    assert verdict.level == "error" and verdict.kind is MissingExtraError
    assert verdict.sentence == (
        "train.graph = ortmodule needs ONNX Runtime's training package (onnxruntime-training-cpu 1.19.2 with torch "
        "2.3.1). Run make ort-env in a checkout and train with .venv-ort/bin/bertwright, or set train.graph=eager."
    )
    assert not found(recipe, tmp_path / "run", "train.graph", ("corpus",))
    on_gpu((9, 0))
    assert "computes on a CPU, but this training runs on a GPU." in [
        verdict.text.removeprefix("train.graph = ortmodule ") for verdict in computing(recipe, ("train",))
    ]


def test_a_kernel_for_gpus_needs_one(
    load: Load, tmp_path: Path, on_gpu: OnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("train.attention=varlen", "train.precision={kind='bf16', allow_slow=true}", "model={size='tiny'}")
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: ())
    (verdict,) = found(load(*keys, "train.device=auto"), tmp_path / "run", "train.attention")
    assert verdict.level == "error"
    assert verdict.sentence == (
        "train.attention = varlen is a kernel for GPUs, but this training runs on a CPU. For another machine, check it "
        "with `bertwright check RECIPE --place FILE`; to run it here, set train.attention=auto."
    )
    for capability in ((8, 0), (9, 0), None):
        on_gpu(capability)
        assert not found(load(*keys, "train.device=auto"), tmp_path / "run", "train.attention")
    (verdict,) = found(load(*keys, "train.device=cpu"), tmp_path / "run", "train.attention")
    assert verdict.remedy == "Set train.attention=auto.", "no other machine would help"
    (verdict,) = found(
        load(*keys[1:], "train.attention=triton", "train.device=cpu"), tmp_path / "run", "train.attention"
    )
    assert verdict.text == "train.attention = triton is a kernel for GPUs, but this training runs on a CPU."
    own = load("train.kernels=triton", *keys[1:], "train.device=cpu")
    (verdict,) = found(own, tmp_path / "run", "train.kernels")
    assert verdict.sentence == (
        "train.kernels = triton is a kernel for GPUs, but this training runs on a CPU. Set train.kernels=torch."
    )
    on_gpu((7, 5))
    (verdict,) = found(load(*keys, "train.device=auto"), tmp_path / "run", "train.attention")
    assert verdict.level == "error" and verdict.sentence == (
        "train.attention = varlen needs compute capability 8.0 (NVIDIA Ampere), but this GPU has 7.5. For another "
        "machine, check it with `bertwright check RECIPE --place FILE`; to run it here, set train.attention=padded."
    )


@pytest.mark.parametrize("whose", ["[model]", "train.objective.teacher"])
def test_windows_on_a_gpu_need_a_newer_torch(
    whose: str, load: Load, tmp_path: Path, on_gpu: OnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    modern = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    teacher = tmp_path / "teacher"
    teacher.mkdir()
    (teacher / "config.json").write_text(json.dumps({**modern, "vocab_size": 160, "model_type": "modernbert"}))
    (teacher / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]) + "\n")
    tensors = {"model.embeddings.tok_embeddings.weight": zeros(160, 16), "head.dense.weight": zeros(16, 16)}
    save_file(tensors, teacher / "model.safetensors")
    keys = ["train.attention=varlen", "train.precision=bf16", "train.device=auto", "examples.plan=full-sentences"]
    if whose == "[model]":
        keys += ["model={kind='modern', size='tiny'}"]
    else:
        objective = f"{{kind='distillation', teacher='{teacher}', hidden_weight=0}}"
        keys += [f"train.objective={objective}", "model={size='tiny'}"]
    on_gpu((9, 0))
    recipe = load(*keys)
    assert not found(recipe, tmp_path / "run", "train.attention")
    monkeypatch.setattr(machine_facts, "torch_build", lambda: TorchBuild("2.11.1+cu128", True))
    assert not found(load("train.attention=triton", *keys[1:]), tmp_path / "run", "train.attention")
    (verdict,) = found(recipe, tmp_path / "run", "train.attention")
    assert verdict.kind is MissingExtraError and verdict.sentence == (
        f"train.attention = varlen needs torch 2.12 for the attention windows of {whose}, but this is torch "
        "2.11.1+cu128. Install torch 2.12 or newer, or set train.attention=padded."
    )
    assert not list(computing(load(*keys, "train.attention=padded"), ("train",)))


@each_row(
    ("phase", "steps"),
    [
        ("train.phases.0.steps=7", 7),
        ("train.phases.0={length=16, batch=8, learning_rate=1e-3, steps=9, end_after=7}", 7),
        ("train.phases.0={length=16, batch=8, learning_rate=1e-3, samples=50}", 7),
        ("train.phases.0={length=16, batch=8, batch_warmup=[[0, 4], [2, 8]], learning_rate=1e-3, samples=42}", 7),
        ("train.phases.0={length=16, batch=8, learning_rate=1e-3, epochs=1, end_after=7}", 7),
        ("train.phases.0={length=16, batch=8, learning_rate=1e-3, epochs=1}", None),
    ],
)
def test_an_average_of_weights_that_no_step_has_is_refused(
    phase: str, steps: int | None, load: Load, tmp_path: Path
) -> None:
    for every in (7, 8):
        recipe = load(phase, f"train.averaging={{kind='last', count=1, every={every}}}")
        verdicts = found(recipe, tmp_path / "run", "train.averaging")
        assert len(verdicts) == (steps is not None and every > steps)
        for verdict in verdicts:
            assert verdict.level == "error" and verdict.sentence == (
                "train.averaging.every = 8, but the phases (train.phases) have 7 steps together: there would be "
                "nothing to average. Lower train.averaging.every, or set train.averaging=none."
            )


def test_what_only_a_part_of_has_an_effect_is_warned_of(load: Load, tmp_path: Path) -> None:
    recipe = load("train.expected=[{step=4, high=9}, {step=3, high=9}]", "train.averaging={kind='last', every=2}")
    for about, said in (("train.expected.0", "step 4 comes after the 3 steps"), ("train.averaging", "only 1 copies")):
        (verdict,) = found(recipe, tmp_path / "run", about)
        assert verdict.level == "warning" and said in verdict.text
    assert not found(recipe, tmp_path / "run", "train.expected.1")


def test_the_torch_version_is_read_without_importing_it() -> None:
    import torch

    build = torch_build()
    assert build.version == torch.__version__
    assert build.accelerated == bool(torch.version.cuda or torch.version.hip)


@each_row(
    ("override", "module", "says"),
    [
        ("train.seed=1", "transformers", r"not installed: pip install 'bertwright\[hf\]'. Or stop before that stage"),
        ('vocab.trainer.kind="sentencepiece"', "sentencepiece", r"bertwright\[sentencepiece\]"),
        ("corpus.source=s3://box/a.txt", "s3fs", r"bertwright\[s3\]"),
        ("train.mirror=az://box/run", "adlfs", r"writing az:// needs adlfs, .*bertwright\[azure\]"),
    ],
)
def test_missing_packages_are_reported_before_any_work(
    override: str, module: str, says: str, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = recipe_packages.find_spec
    monkeypatch.setattr(recipe_packages, "find_spec", lambda name: None if name == module else there(name))
    with pytest.raises(MissingExtraError, match=says):
        run(load(override), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nothing_is_touched_where_there_is_an_error(load: Load, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.txt: No such file or directory\. Set corpus\.source") as caught:
        run(load(f"corpus.source={tmp_path}/no.txt", f"corpus.wikitext.templates={tmp_path}/no.toml"), tmp_path / "run")
    assert "no.toml is not a file. Give the path" in str(caught.value), "all errors are shown at once"
    assert not (tmp_path / "run").exists()


def test_a_recipe_built_in_python_is_checked_across_sections(load: Load, tmp_path: Path) -> None:
    recipe = load()
    long = recipe.model_copy(update={"train": load("train.phases.0.steps=2").train.model_copy()})
    phase = long.train.phases[0].model_copy(update={"length": 512})
    long = long.model_copy(update={"train": long.train.model_copy(update={"phases": (phase,)})})
    with pytest.raises(RecipeError, match=r"train\.phases\.0\.length"):
        run(long, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_verdicts_as_lines_as_errors_and_as_exit_codes() -> None:
    verdicts = [
        Verdict("ok", "disk", "12 GB are free"),
        from_exception("corpus.source", DataError("a is empty. Download it again.")),
        Verdict("warning", "x", "y.", "Do z."),
    ]
    assert ["  ".join((f"{level:<7}", *rest)) for level, *rest in verdict_rows(verdicts)] == [
        "ok       disk           12 GB are free",
        "error    corpus.source  a is empty. Download it again.",
        "warning  x              y. Do z.",
    ]
    assert exit_code(verdicts) == 3 and exit_code(verdicts[:1]) == 0
    with pytest.raises(DataError, match=r"^a is empty\. Download it again\.$"):
        refuse(verdicts)


def test_requirements_of_finished_stages_are_not_checked(
    load: Load, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "memory_size", lambda: 1)
    monkeypatch.setattr(resources, "disk_free", lambda out: 1)
    recipe = load("train.device=cuda")
    about = {verdict.about for verdict in check_recipe(recipe, trained, ("corpus", "vocab", "examples", "train"))}
    assert "corpus.source" in about and not {"train.device", "train memory", "disk"} & about
    (trained / "train" / "manifest.json").unlink()
    about = {verdict.about for verdict in check_recipe(recipe, trained, ("corpus", "vocab", "examples", "train"))}
    assert {"train.device", "train memory", "disk"} <= about


def test_a_gpu_of_unknown_memory_is_no_error(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_facts, "torch_build", lambda: TorchBuild("2.13.0", True))
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: (0,))
    monkeypatch.setattr(resources, "memory_size", lambda: 1)
    (on_gpu,) = found(load("train.device=auto"), tmp_path / "run", "train memory", ("train",))
    assert on_gpu.level == "ok" and on_gpu.text.endswith("take about 370 MB of memory")
    (on_cpu,) = found(load("train.device=cpu"), tmp_path / "run", "train memory", ("train",))
    assert on_cpu.level == "error" and on_cpu.kind is DataError


@each_row(("limit", "level"), [(0.1, "error"), (0.2, "warning"), (0.36, "warning"), (0.39, None)])
def test_a_memory_limit_below_one_sequence_is_reported(
    limit: float, level: str | None, load: Load, tmp_path: Path
) -> None:
    recipe = load("train.phases.0.micro_batch=auto", f"train.memory_limit_gb={limit}")
    verdicts = found(recipe, tmp_path / "run", "train.memory_limit_gb", ("train",))
    assert [verdict.level for verdict in verdicts] == ([level] if level else [])
    for verdict in verdicts:
        assert (
            f"micro_batch = auto takes about 370 MB even with one sequence at a time, but {verdict.about} = {limit}."
            in verdict.text
        )


def test_ranks_of_one_machine_share_its_memory(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_facts, "gpu_memory", lambda: ())
    recipe = load("train.device=cpu", "train.phases.0.batch=8", "train.phases.0.micro_batch=1")
    monkeypatch.setattr(resources, "memory_size", lambda: 1_200_000_000)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "16")
    levels = {}
    for here in (1, 2, 8):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(here))
        verdicts = check_recipe(recipe, tmp_path / "run", ["train"], 16)
        (levels[here],) = (verdict for verdict in verdicts if verdict.about == "train memory")
    assert [verdict.level for verdict in levels.values()] == ["ok", "ok", "error"]
    assert levels[1].text.endswith("take about 370 MB of memory, 1.2 GB are available")
    assert (
        ", on each of the 8 ranks of this machine, take about 370 MB of memory, 150 MB are available" in levels[8].text
    )
    assert levels[8].remedy.endswith(", or start fewer ranks on this machine.")


def test_a_verdict_without_a_remedy_and_none_at_all() -> None:
    bare = from_exception("x", DataError("it is broken"))
    assert (bare.text, bare.remedy, bare.sentence) == ("it is broken", "", "it is broken")
    assert bare.as_dict() == {"level": "error", "about": "x", "text": "it is broken", "remedy": ""}
    assert list(verdict_rows([])) == [] and exit_code([]) == 0
    refuse([Verdict("warning", "x", "y.", "Do z.")])


def test_instructions_that_the_processor_lacks_are_an_error(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_isa, "processor_flags", lambda: frozenset({"avx2"}))
    recipe = load("train.cpu_isa=avx512", "train.device=cpu")
    (verdict,) = instructions(recipe, ("train",))
    assert verdict.level == "error" and "train.cpu_isa = avx512, but this processor" in verdict.text
    assert verdict.text.endswith("has avx2 at most.") and verdict.remedy == "Leave it out, or set a lower bound."
    (verdict,) = instructions(load("train.cpu_isa=avx2", "train.device=cpu"), ("train",))
    assert (verdict.level, verdict.text) == ("ok", "instructions up to avx2")
    assert not [*instructions(recipe, ("corpus",)), *instructions(load(), ("train",))]


A100 = OtherMachine("8 x a100", True, (8, 0), 80e9, 8, 96, 8)
V100 = OtherMachine("v100", True, (7, 0), 32e9, 1, 40, 1)
SOCKETS = OtherMachine("2 nodes of 112 cores", False, None, 256e9, 2, 112, 4)
MODERN = ("train.attention=varlen", "train.precision=bf16", "train.device=auto", "train.graph=compiled")


@each_row(
    ("at", "keys", "errors"),
    [
        (A100, (*MODERN, "train.engine=zero"), []),
        (A100, ("train.device=cuda",), []),
        (A100, ("train.device=auto", "train.phases.0.batch=4"), ["place"]),
        (A100, ("train.device=cpu", "train.attention=varlen", "train.precision=bf16"), ["train.attention"]),
        (V100, MODERN, ["train.precision", "train.attention"]),
        (V100, ("train.precision=fp16", "train.device=auto"), []),
        (SOCKETS, MODERN, ["train.attention"]),
        (SOCKETS, ("train.device=cuda",), ["train.device"]),
        (SOCKETS, ("train.precision=bf16",), []),
    ],
)
def test_checks_for_another_machine_ignore_this_one(
    at: OtherMachine,
    keys: tuple[str, ...],
    errors: list[str],
    load: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "run" / "mine").mkdir(parents=True)  # here no run may use such a folder
    monkeypatch.setattr(machine_facts, "gpu_capability", lambda: pytest.fail("asks for the GPU that is here"))
    monkeypatch.setattr(resources, "disk_free", lambda _: pytest.fail("asks for the disk that is here"))
    recipe = load("train.phases.0.batch=8", "train.phases.0.micro_batch=1", "model={size='tiny'}", *keys)
    verdicts = check_recipe(recipe, tmp_path / "run", STAGES, at.ranks, at)
    failed = [verdict for verdict in verdicts if verdict.level == "error" and verdict.about != "corpus.source"]
    assert [verdict.about for verdict in failed] == errors
    assert not [verdict.remedy for verdict in failed if "For another machine" in verdict.remedy]
    (memory,) = (verdict for verdict in verdicts if verdict.about == "train memory")
    on_cpu = not at.gpu or "train.device=cpu" in keys
    assert ("are available" not in memory.text) if at.gpu and on_cpu else f"{size_of(at.memory)} are" in memory.text


def test_check_reads_a_place_with_its_overrides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["bertwright", "check", *words])
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsys.readouterr()
        return int(exited.value.code or 0), " ".join((captured.out + captured.err).split())

    code, text = said("smoke", "--place", "dgx-2", "--nodes", "1")
    assert code == 0 and "ok place 16 x v100, 16 training processes;" in text
    assert "ok train.precision fp16, on a GPU of compute capability 7.0" in text
    assert said("smoke", "--place", "dgx-2", "--nodes", "2")[0] == 2, "32 ranks, and batches of 16"
    for words in (["--place", "dgx-2"], ["smoke", "--nodes", "2"], ["smoke", "--place", "spr", "--scale", "tiny"]):
        code, text = said(*words)
        assert code == 2 and "has no effect" in text
