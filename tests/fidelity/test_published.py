"""The numbers that the original systems publish, each with its source, beside what our recipe resolves to.

Sources are files of the originals' repositories: NVIDIA/DeepLearningExamples @4733603 (PyTorch/LanguageModeling/BERT),
microsoft/onnxruntime-training-examples before 2021-06-10 (nvidia-bert), roberthajdu92/nvidia-bert-wiki-preprocess
@8cddce5, IntelAI/models (quickstart/language_modeling/pytorch/bert_large/training/cpu).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.pipeline.command import RECIPES
from tests.pipeline.heads import entries, head, overrides
from tests.reference.nvidia_bert import NO_DECAY, poly_warm_up
from tests.rows import each_row

from bertwright import Recipe
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.by_name import decays
from bertwright.optim.config import AdamWConfig, LambConfig
from bertwright.optim.schedule import learning_rate
from bertwright.train.settings.phase_config import PhaseConfig

Rule = Callable[[int, int, float, float], float]
"""The rate of the update after so many applied ones, of (updates, all updates, warm-up share, peak)."""


@dataclass(frozen=True)
class Phase:
    """A phase as it is published."""

    source: str
    gpus: int
    train_batch_size: int
    """Sequences of a GPU and update."""
    accumulation: int
    length: int
    predictions: int
    steps: int
    warmup: float
    peak: float

    @property
    def batch(self) -> int:
        return self.gpus * self.train_batch_size


def linear_warm_up(updates: int, total: int, warmup: float, peak: float) -> float:
    """onnxruntime, training/optim/lr_scheduler.py, LinearWarmupLRScheduler."""
    x = (updates + 1) / (total + 1)
    return peak * (x / warmup if x < warmup else max((x - 1.0) / (warmup - 1.0), 0.0))


NVIDIA = (
    Phase("scripts/run_pretraining.sh, arguments 1 to 12", 8, 8192, 128, 128, 20, 7038, 0.2843, 6e-3),
    Phase("scripts/run_pretraining.sh, arguments 17 to 21", 8, 4096, 512, 512, 80, 1563, 0.128, 4e-3),
)
ORT_DGX2 = (
    Phase("nvidia-bert guide, in DGX-2, step 6: 8192, 128", 8, 8192, 128, 128, 20, 7038, 0.2843, 6e-3),
    Phase("nvidia-bert guide, in DGX-2, step 6: 4096, 256", 8, 4096, 256, 512, 80, 1563, 0.128, 4e-3),
)
ORT_NC24 = (
    Phase("nvidia-bert/README.md, step 5: 16320, 340", 4, 16320, 340, 128, 20, 7038, 0.2843, 6e-3),
    Phase("nvidia-bert/README.md, step 5: 8160, 1020", 4, 8160, 1020, 512, 80, 1563, 0.128, 4e-3),
)


def assert_phase(ours: PhaseConfig, theirs: Phase, rule: Rule, rounding: float) -> None:
    """`rounding`: by how much rates may differ, as a share of the peak."""
    assert ours.batch == theirs.batch, theirs.source
    assert ours.micro_batch == theirs.train_batch_size / theirs.accumulation, theirs.source
    assert (ours.length, ours.masking.max_predictions) == (theirs.length, theirs.predictions)
    assert (ours.steps, ours.warmup, ours.learning_rate) == (theirs.steps, theirs.warmup, theirs.peak), theirs.source
    assert ours.steps is not None
    warm = ours.warmup_steps(ours.steps)
    for step in (0, 1, int(warm) - 1, int(warm), int(warm) + 1, ours.steps - 2, ours.steps - 1):
        found = learning_rate(ours.schedule, step, ours.steps, warm, ours.learning_rate)
        wanted = rule(step, theirs.steps, theirs.warmup, theirs.peak)
        assert found == pytest.approx(wanted, rel=1e-12, abs=rounding * theirs.peak), (theirs.source, step)


def assert_masks_and_examples(recipe: Recipe, passes: int) -> None:
    """data/create_datasets_from_start.sh, bertPrep.py and create_pretraining_data.py."""
    examples = recipe.examples
    assert (examples.plan, examples.passes, examples.short_seq_prob) == ("next-sentence", passes, 0.1)
    assert (examples.random_next_prob, examples.random_label) == (0.5, "nvidia")
    for phase in recipe.train.phases:
        masking = phase.masking
        assert (masking.rate, masking.mask_share, masking.random_share) == (0.15, 0.8, 0.1)
        assert (masking.unit, masking.count, masking.random_tokens, masking.static) == ("tokens", "exact", "all", True)
        assert phase.document_range == (0.0, 1.0), "both phases read all of the text"


def assert_lamb(recipe: Recipe) -> None:
    """apex FusedLAMB as run_pretraining.py makes it; ort_supplement.py has the same numbers."""
    optim = recipe.optim
    assert isinstance(optim, LambConfig)
    assert (optim.betas, optim.eps, optim.weight_decay, optim.bias_correction) == ((0.9, 0.999), 1e-6, 0.01, True)
    assert (optim.max_grad_norm, optim.trust_ratio_on_undecayed, optim.max_trust_ratio) == (1.0, False, 0.0)
    assert (optim.grad_averaging, optim.clip_before_reduction) == (True, False)
    assert_decay(NO_DECAY)


def assert_decay(without: tuple[str, ...]) -> None:
    """The tensors that decay are those whose published names hold none of `without`."""
    network = PreTrainingModel(BertModelConfig(size="tiny").resolve(160))
    state = network.state_dict()
    theirs = dict(zip(state, peer_of(network.config).names.to_theirs(state), strict=True))
    parameters = [name for name, _ in network.named_parameters()]
    assert len(parameters) == len(state) > 40
    for name in parameters:
        assert decays(name) == (not any(part in theirs[name] for part in without)), theirs[name]


def assert_network(recipe: Recipe, size: dict[str, int], rows: int) -> None:
    """bert_config.json, and the vocabulary padded to a multiple of 8."""
    network = recipe.network()
    published: dict[str, Any] = {
        **size, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "vocab_size": rows,
        "layer_norm_eps": 1e-12, "next_sentence": True,
    }  # fmt: skip
    assert network.model_dump(exclude={"labels", "head"}) == published


def assert_amount(recipe: Recipe, sequences: list[int], tokens: list[float]) -> None:
    """What the training reads: sequences, and billions of tokens with their padding, of each phase."""
    read = [phase.batch * (phase.end_after or phase.steps or 0) for phase in recipe.train.phases]
    assert read == sequences
    billions = [each * phase.length / 1e9 for each, phase in zip(read, recipe.train.phases, strict=True)]
    assert billions == pytest.approx(tokens, rel=0.005)


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


@each_row(("name", "size"), [("nvidia-large", LARGE), ("nvidia-base", BASE)])
def test_nvidia(name: str, size: dict[str, int]) -> None:
    recipe = Recipe.load(name)
    for ours, theirs in zip(recipe.train.phases, NVIDIA, strict=True):
        assert_phase(ours, theirs, poly_warm_up, 0.0)
    assert_masks_and_examples(recipe, passes=5)
    assert_lamb(recipe)
    assert_network(recipe, size, 30528)
    assert recipe.vocab.lower_case and recipe.vocab.strip_accents
    # README, "Enabling mixed precision" and run_pretraining.py: AMP with a dynamic scale that starts at 2^20.
    assert recipe.train.precision.model_dump(include={"kind", "initial_scale"}) == {
        "kind": "fp16",
        "initial_scale": 2.0**20,
    }
    assert (recipe.train.seed, recipe.train.checkpoint_every) == (42, 200)
    assert_amount(recipe, [461_242_368, 51_216_384], [59.0, 26.2])


def test_the_rates_of_nvidia_at_its_jumps() -> None:
    """6e-3 falls to 5.08e-3 from one update to the next, 4e-3 to 3.74e-3."""
    for phase, wanted in zip(Recipe.load("nvidia-large").train.phases, (5.08e-3, 3.74e-3), strict=True):
        assert phase.steps is not None
        warm = phase.warmup_steps(phase.steps)
        before, after = (
            learning_rate(phase.schedule, int(warm) + k, phase.steps, warm, phase.learning_rate) for k in (-1, 0)
        )
        assert before == pytest.approx(phase.learning_rate, rel=1e-2) and after == pytest.approx(wanted, abs=1e-5)


def assert_onnx_runtime(recipe: Recipe, phases: tuple[Phase, Phase]) -> None:
    for ours, theirs in zip(recipe.train.phases, phases, strict=True):
        # Theirs divides by the steps plus 1, so both lines are off by a part of one step.
        assert_phase(ours, theirs, linear_warm_up, 1.2 / theirs.steps)
    assert_masks_and_examples(recipe, passes=5)
    assert_lamb(recipe)
    assert recipe.train.precision.kind == "fp16"
    assert (recipe.train.seed, recipe.train.checkpoint_every) == (42, 200)


@each_row(
    ("name", "phases", "batches"),
    [("ort-dgx2", ORT_DGX2, (65536, 32768)), ("ort-azure-nc24", ORT_NC24, (65280, 32640))],
)
def test_onnx_runtime(name: str, phases: tuple[Phase, Phase], batches: tuple[int, int]) -> None:
    recipe = Recipe.load(name)
    assert_onnx_runtime(recipe, phases)
    assert_amount(recipe, [7038 * batches[0], 1563 * batches[1]], [59.0, 26.2])
    assert_network(recipe, LARGE, 30528)
    assert tuple(p.batch for p in recipe.train.phases) == batches
    # README: "we recommend setting the effective batch size to ~64,000 for phase 1 and ~32,000 for phase 2"
    assert batches == pytest.approx((64_000, 32_000), rel=0.03)


def test_hungarian() -> None:
    """README.md of the repository: the training's settings are ONNX Runtime's, the text's and vocabulary's its own."""
    recipe = Recipe.load("hungarian")
    assert_onnx_runtime(recipe, ORT_NC24)
    # "--vocab_size=32000 --input_sentence_size=100000000 --character_coverage=0.9999 --model_type=bpe"
    trainer = recipe.vocab.trainer.model_dump()
    assert trainer == {
        "kind": "sentencepiece",
        "model": "bpe",
        "input_sentence_size": 100_000_000,
        "shuffle": True,
        "character_coverage": 0.9999,
        "add_characters": False,
    }
    assert recipe.vocab.size is not None and recipe.vocab.size - recipe.vocab.unused - 1 == 32_000
    assert not recipe.vocab.lower_case and not recipe.vocab.strip_accents, "lower_case_0, as its folders say"
    assert_network(recipe, LARGE, 32104)
    assert_amount(recipe, [459_440_640, 51_016_320], [58.8, 26.1])
    assert recipe.corpus is not None and recipe.corpus.language == "hu"
    # TurkuNLP, config/filter.sh, the defaults of filtering.py
    thresholds = {"min_mean_words": 4, "min_sentences": 3, "max_sentences": 1000, "min_tokens": 20, "max_tokens": 10000,
                  "max_wordless": 0.2, "max_punctuation": 0.075, "max_upper": 0.1, "max_digits": 0.075,
                  "max_foreign": 0.02, "min_words": 30}  # fmt: skip
    assert recipe.corpus.filter.model_dump(include=set(thresholds)) == thresholds


def straight_line(updates: int, total: int, warmup: float, peak: float) -> float:
    """Intel's LinearWarmupPolyDecayScheduler with power 1 and no warm-up, whose first update has the peak."""
    return peak * (1 - updates / total)


@each_row(
    ("preset", "precision", "isa", "batches", "ends"),
    [
        ("fp32", "fp32", "auto", (224, 28), None),
        ("avx-fp32", "fp32", "avx512", (224, 28), None),
        ("bf16", "bf16", "auto", (448, 56), 10045),
        ("bf32", "bf32", "auto", (224, 28), None),
    ],
)
def test_intel(preset: str, precision: str, isa: str, batches: tuple[int, int], ends: int | None) -> None:
    """run_bert_pretrain_phase1.sh:25 and :31, batch_size 224 (bf16 448); run_bert_pretrain_phase2.sh:23 and :28, 28
    (bf16 56), all of v2.6.2; and the same arguments in both (v3.0.0, :62):
    --learning_rate=3.5e-4 --opt_lamb_beta_1=0.9 --opt_lamb_beta_2=0.999 --warmup_proportion=0.0 --max_steps=13700
    --max_predictions_per_seq=76 --weight_decay_rate=0.01 --max_samples_termination=4500000.
    """
    recipe = Recipe.load("intel-cpu", [f"preset={preset}"])
    first, second = recipe.train.phases
    assert (recipe.train.precision.kind, recipe.train.cpu_isa, recipe.train.device) == (precision, isa, "cpu")
    batch, batch_2 = batches
    assert (first.length, first.batch, first.end_after) == (128, batch, ends)
    assert (second.length, second.batch, second.end_after) == (512, batch_2, None)
    assert recipe.train.evaluate_every == -(-150_000 // batch)
    # "phase 1 using max_seq_len=128 for the first 90% dataset", "phase 2 ... with the remaining 10%" (README)
    assert (first.document_range, second.document_range) == ((0.0, 0.9), (0.9, 1.0))
    if ends:
        assert (ends - 1) * batch < 4_500_000 <= ends * batch
    read = 4_500_160 if ends else 3_068_800
    assert_amount(recipe, [read, 13700 * batch_2], [read * 128 / 1e9, 13700 * batch_2 * 512 / 1e9])
    for phase in (first, second):
        assert (phase.learning_rate, phase.warmup, phase.steps) == (3.5e-4, 0, 13700)
        assert phase.target_accuracy == 0.72
        assert (phase.masking.max_predictions, phase.masking.rate, phase.masking.static) == (76, 0.15, True)
        for step in (0, 1, 13698, 13699):
            found = learning_rate(phase.schedule, step, 13700, 0, phase.learning_rate)
            assert found == pytest.approx(straight_line(step, 13700, 0, 3.5e-4), rel=1e-9)
    assert_lamb(recipe)
    assert_network(recipe, LARGE, 30522)
    assert (recipe.examples.passes, recipe.examples.random_label) == (10, "google")
    assert recipe.train.heldout_sequences == 10_000


RCP = [
    (256, 3.5e-4, (0.9, 0.999), 0.01, (0, 0), 13700, 150_000),
    (448, 4.25e-4, (0.9, 0.999), 0.01, (0, 0), 6700, 150_000),
    (1536, 2e-3, (0.66, 0.996), 0.01, (0, 0), 2254, 150_000),
    (3072, 2e-3, (0.66, 0.998), 0.01, (100, 0), 1141, 175_000),
    (4096, 2.4e-3, (0.66, 0.998), 0.01, (0, 0), 855, 175_000),
    (4608, 3.5e-3, (0.62, 0.9), 0.01, (0, 0), 700, 200_000),
    (6144, 2.93e-3, (0.7206, 0.78921), 0.001, (0, 0), 700, 200_000),
    (6912, 2.93e-3, (0.7206, 0.78921), 0.001, (0, 0), 700, 225_000),
    (8192, 2.883e-3, (0.88, 0.88), 0.01666, (287, -76), 600, 225_000),
    (8704, 2.972e-3, (0.88, 0.88), 0.01666, (287, -76), 600, 250_000),
    (12288, 3.1e-3, (0.8, 0.925), 0.01666, (300, -100), 500, 275_000),
    (13056, 3.195e-3, (0.8, 0.925), 0.01666, (300, -100), 500, 300_000),
    (16384, 3.3e-3, (0.75, 0.9), 0.01666, (290, -100), 600, 325_000),
]
"""mlcommons/logging 4.1.0, rcp_checker/training_4.1.0/rcps_bert.json: batch, rate, betas, decay, warm-up and the step
that it begins at, steps of the decay; and the samples between two evaluations, by the rule of the task's README."""

SAMPLES = {
    256: 2_552_704, 448: 2_410_630, 1536: 2_777_588, 3072: 2_768_215, 4096: 2_843_443, 4608: 2_794_752,
    6144: 3_321_446, 6912: 3_596_122, 8192: 4_191_437, 8704: 4_278_144, 12288: 4_470_336, 13056: 4_632_576,
    16384: 5_504_307,
}  # fmt: skip
"""The same file: the mean number of sequences to an accuracy of 0.720, by batch."""


def polynomial(updates: int, total: int, ramp: tuple[int, int], peak: float) -> float:
    """mlcommons/training, optimization.py: tf.train.polynomial_decay of power 1 from step 0, and in place of it
    `(global_step - start_warmup_step) / num_warmup_steps` as long as that is below 1."""
    warmup, start = ramp
    return peak * (updates - start) / warmup if updates - start < warmup else peak * (1 - updates / total)


@each_row(("batch", "rate", "betas", "decay", "ramp", "steps", "interval"), RCP)
def test_mlperf(
    batch: int, rate: float, betas: tuple[float, float], decay: float, ramp: tuple[int, int], steps: int, interval: int
) -> None:
    recipe, (warmup, start) = Recipe.load("mlperf-large", [f"preset={batch}"]), ramp
    (phase,), optim = recipe.train.phases, recipe.optim
    assert isinstance(optim, LambConfig)
    assert (phase.length, phase.batch, phase.steps, phase.warmup) == (512, batch, steps, warmup)
    assert (phase.learning_rate, optim.betas, optim.weight_decay, optim.eps) == (rate, betas, decay, 1e-6)
    # README: "masked_lm_accuracy of 0.720", 10,000 examples, "max_predictions_per_seq=76", clipped before all-reduce
    assert (phase.target_accuracy, recipe.train.heldout_sequences, phase.masking.max_predictions) == (0.72, 10_000, 76)
    assert optim.clip_before_reduction and optim.max_grad_norm == 1.0 and optim.bias_correction
    assert interval == int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000
    assert (recipe.train.evaluate_every - 1) * batch < interval <= recipe.train.evaluate_every * batch
    end = warmup + start
    for step in (0, 1, max(end - 2, 0), end, end + 1, steps - 1):
        found = learning_rate(phase.schedule, step, steps, phase.warmup_steps(steps), rate)
        # With a warm-up ours is one step ahead.
        assert found == pytest.approx(polynomial(step + bool(warmup), steps, ramp, rate), rel=1e-9, abs=1e-12)
    assert_amount(recipe, [batch * steps], [batch * steps * 512 / 1e9])
    # The accuracy is reached before the decay has ended, and after as many sequences as the head says.
    assert SAMPLES[batch] < batch * steps
    assert f"{SAMPLES[batch] / 1e6:.2f}" in entries(head(RECIPES / "mlperf-large.toml"))["expect"]
    assert_network(recipe, LARGE, 30522)
    assert_decay(("LayerNorm", "layer_norm", "bias"))


AZURE = [
    ("bert-large", 64, 1, 24, 100, "auto"),
    ("bert-large-deepspeed", 93, 1, 24, 1000, "deepspeed"),
    ("bert-base", 128, 1, 12, 100, "auto"),
    ("bert-base-deepspeed", 532, 1, 12, 100, "auto"),
    ("distilbert", 256, 1, 6, 100, "auto"),
    ("distilbert-deepspeed", 512, 2, 6, 100, "auto"),
]
"""README.md, "Run the Job" and "Additional Experiments": --per_device_train_batch_size, --gradient_accumulation_steps,
the layers of the network, --num_train_epochs, and ZeRO stage 1 or 0 of ds_config.json."""


MASKED = next(overrides(entries(head(RECIPES / "azure-glue.toml"))["masked LM"]))
"""What the head of the recipe says for masked LM."""


def linear_schedule_with_warmup(updates: int, total: int, warmup: int, peak: float) -> float:
    """transformers, optimization.py, get_linear_schedule_with_warmup; a phase shorter than the warm-up only rises."""
    return peak * (updates / warmup if updates < warmup else max(0.0, (total - updates) / max(1, total - warmup)))


@each_row("masked", [False, True])
@each_row(("preset", "device_batch", "accumulation", "layers", "epochs", "engine"), AZURE)
def test_azure(
    preset: str, device_batch: int, accumulation: int, layers: int, epochs: int, engine: str, masked: bool
) -> None:
    """--learning_rate 3e-05 --adam_beta1 0.8 --adam_beta2 0.999 --weight_decay 3e-07 --warmup_steps 500 --fp16."""
    recipe = Recipe.load("azure-glue", [f"preset={preset}", *(MASKED if masked else ())])
    assert (recipe.network().labels, recipe.train.init_from) == (() if masked else ("unacceptable", "acceptable"), None)
    (phase,), optim = recipe.train.phases, recipe.optim
    assert isinstance(optim, AdamWConfig)
    assert (optim.betas, optim.eps, optim.weight_decay, optim.max_grad_norm) == ((0.8, 0.999), 1e-8, 3e-7, 1.0)
    assert (phase.batch, phase.micro_batch) == (16 * device_batch * accumulation, device_batch)
    assert (phase.epochs, recipe.train.precision.kind, recipe.train.engine.kind) == (epochs, "fp16", engine)
    assert recipe.network().num_hidden_layers == layers and recipe.network().max_position_embeddings == 512
    steps = -(-epochs * 8551 // phase.batch)  # sentences of CoLA
    for step in (0, 1, min(steps, 500) - 2, *((500, 501) if steps > 501 else ()), steps - 2, steps - 1):
        found = learning_rate(phase.schedule, step, steps, phase.warmup_steps(steps), phase.learning_rate)
        # Theirs begins with rate 0, and is a step behind ours as long as it rises.
        wanted = linear_schedule_with_warmup(step + (step < 499), steps, 500, 3e-5)
        assert found == pytest.approx(wanted, rel=0.03, abs=3e-5 / 336), (step, steps)  # a step of the shortest decay


TASKS = {
    "cola": 2, "sst2": 2, "mrpc": 2, "qqp": 2, "stsb": 1, "mnli": 3, "mnli-mm": 3, "qnli": 2, "rte": 2, "wnli": 2,
}  # fmt: skip
"""glue_datasets.py: the labels of each task, 3 for mnli and 1 for stsb."""


@each_row("preset", [row[0] for row in AZURE])
@each_row("task", TASKS)
def test_azure_has_the_classes_of_each_task(task: str, preset: str) -> None:
    wanted = [f"preset={preset}", f"train.objective.task={task}", f"train.phases.0.data=glue/{task}"]
    recipe = Recipe.load("azure-glue", wanted)
    assert len(recipe.network().labels) == TASKS[task]
