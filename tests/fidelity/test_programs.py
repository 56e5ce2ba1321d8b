"""The numbers of the other programs, copied from their published sources, beside those that `translate` reads.

Each row is a file at a commit or tag. The line of each number stands beside it in `translate/programs/*.toml`.
"""

import pytest
from tests.rows import each_row

from bertwright.translate.program import programs
from bertwright.translate.shell import parse_words
from bertwright.translate.translation import Translation, translate

NVIDIA = {"max_seq_length": 512, "max_predictions_per_seq": 80, "train_batch_size": 32, "learning_rate": 5e-5,
          "max_steps": 1000, "warmup_proportion": 0.01, "seed": 42, "gradient_accumulation_steps": 1, "log_freq": 1.0,
          "num_steps_per_checkpoint": 100}  # fmt: skip
INTEL = {"eval_iter_start_samples": 3_000_000, "num_eval_examples": 10_000, "learning_rate": 5e-5,
         "weight_decay_rate": 0.01, "opt_lamb_beta_1": 0.9, "opt_lamb_beta_2": 0.999, "gradient_accumulation_steps": 1,
         "max_predictions_per_seq": 76, "max_samples_termination": 14_000_000, "warmup_proportion": 0.01,
         "log_freq": 10_000, "keep_n_most_recent_checkpoints": 20, "num_samples_per_checkpoint": 500_000,
         "target_mlm_accuracy": 0.72}  # fmt: skip
LAUNCHER = {"learning_rate": 6e-3, "warmup_proportion": 0.2843, "train_steps": 7038, "save_checkpoint_steps": 200,
            "train_batch_size_phase2": 4096, "learning_rate_phase2": 4e-3, "warmup_proportion_phase2": 0.128,
            "train_steps_phase2": 1563}  # fmt: skip
TRAINER = {"num_train_epochs": 3.0, "per_device_train_batch_size": 8, "gradient_accumulation_steps": 1,
           "per_device_eval_batch_size": 8, "learning_rate": 5e-5, "adam_beta1": 0.9, "adam_beta2": 0.999,
           "adam_epsilon": 1e-8, "weight_decay": 0.0, "max_grad_norm": 1.0, "warmup_steps": 0.0, "seed": 42,
           "logging_steps": 500, "save_steps": 500}  # fmt: skip
BUILDER = {"max_seq_length": 512, "max_predictions_per_seq": 20, "dupe_factor": 5}
DEFAULTS = {
    # NVIDIA/DeepLearningExamples @4733603 and @729963d, PyTorch/LanguageModeling/BERT
    "nvidia": NVIDIA | {"init_loss_scale": 2**20},
    "nvidia_launcher": LAUNCHER
    | {"train_batch_size": 8192, "num_gpus": 8, "gradient_accumulation_steps": 128, "seed": 42}
    | {"gradient_accumulation_steps_phase2": 512},
    "nvidia_launcher_2024": LAUNCHER
    | {"train_batch_size": 8192, "gradient_accumulation_steps": 128, "seed": 12439}
    | {"gradient_accumulation_steps_phase2": 512},
    "bert_prep": BUILDER,
    # microsoft/onnxruntime-training-examples @e3ed586, nvidia-bert/ort_addon
    "ort": NVIDIA,
    "ort_launcher": LAUNCHER
    | {"train_batch_size": 4096, "num_gpus": 8, "gradient_accumulation_steps": 32, "seed": 42}
    | {"gradient_accumulation_steps_phase2": 256, "gpu_memory_limit_gb": 32},
    # google-research/bert @eedf571
    "create_pretraining_data": {"max_seq_length": 128, "max_predictions_per_seq": 20, "dupe_factor": 10},
    "tensorflow": {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "train_batch_size": 32,
        "eval_batch_size": 8,
        "learning_rate": 5e-5,
        "num_train_steps": 100_000,
        "num_warmup_steps": 10_000,
        "save_checkpoints_steps": 1000,
    },
    # roberthajdu92/nvidia-bert-wiki-preprocess @8cddce5; google/sentencepiece, sentencepiece_model.proto
    "create_hdf5_files": BUILDER | {"do_lower_case": 0},
    "spmtrain": {"vocab_size": 8000, "character_coverage": 0.9995},
    # intel/ai-reference-models v3.4.1, models_v2/pytorch/bert_large/training/{cpu,gpu}/run_pretrain_mlperf.py
    "intel": INTEL
    | {"eval_iter_samples": -1, "eval_batch_size": 128, "train_batch_size": 18, "max_steps": 1536, "seed": 42},
    "intel_gpu": INTEL
    | {"eval_iter_samples": 16, "eval_batch_size": 16, "train_batch_size": 8, "max_steps": 218_880}
    | {"max_steps_for_scheduler": 218_880, "min_learning_rate": 0.0},
    # one node, where no option says more
    "intel_phase1": {"NNODES": 1},
    "intel_phase2": {"NNODES": 1},
    "intel_run_model": {"NNODES": 1},
    "intel_run_model_gpu": {"NUM_ITERATIONS": 10},
    # huggingface/transformers, TrainingArguments
    "pretrain_glue": TRAINER,
    # examples/pytorch/language-modeling/run_mlm.py, text-classification/run_glue.py, run_classification.py @005c23a
    "run_mlm": TRAINER | {"mlm_probability": 0.15, "validation_split_percentage": 5},
    "run_glue": TRAINER | {"max_seq_length": 128},
    "run_classification": TRAINER | {"max_seq_length": 128},
}


@each_row("name", programs())
def test_the_defaults_are_those_of_the_source(name: str) -> None:
    defaults = {key: option.default for key, option in programs()[name].options.items()}
    numbers = {key: value for key, value in defaults.items() if type(value) in (int, float)}
    assert numbers == DEFAULTS.get(name, {})


def translated(line: str) -> Translation:
    return translate(parse_words(line.split()))


INTEL_BATCHES = [
    # IntelAI/models v2.6.2 (branch pytorch-r1.10-models), quickstart/language_modeling/pytorch/bert_large/training/cpu
    ("run_bert_pretrain_phase1.sh fp32", 224, "run_bert_pretrain_phase1.sh:25 batch_size=224"),
    ("run_bert_pretrain_phase1.sh avx-fp32", 224, "run_bert_pretrain_phase1.sh:25 batch_size=224"),
    ("run_bert_pretrain_phase1.sh bf16", 448, "run_bert_pretrain_phase1.sh:31 batch_size=448"),
    ("run_bert_pretrain_phase2.sh fp32", 28, "run_bert_pretrain_phase2.sh:23 batch_size=28"),
    ("run_bert_pretrain_phase2.sh avx-fp32", 28, "run_bert_pretrain_phase2.sh:23 batch_size=28"),
    ("run_bert_pretrain_phase2.sh bf16", 56, "run_bert_pretrain_phase2.sh:28 batch_size=56"),
    # v3.0.0
    ("run_ddp_bert_pretrain_phase1.sh fp32", 224, "run_ddp_bert_pretrain_phase1.sh:25 batch_size=224"),
    ("run_ddp_bert_pretrain_phase1.sh bf16", 448, "run_ddp_bert_pretrain_phase1.sh:30 batch_size=448"),
    ("run_ddp_bert_pretrain_phase2.sh fp32", 28, "run_ddp_bert_pretrain_phase2.sh:25 batch_size=28"),
    ("run_ddp_bert_pretrain_phase2.sh bf16", 56, "run_ddp_bert_pretrain_phase2.sh:30 batch_size=56"),
    # v3.1.1
    ("batch_size=96 run_bert_pretrain_phase2.sh bf16", 96, "run_bert_pretrain_phase2.sh:23 ${batch_size:-28}"),
    # the container's run.sh: /bin/bash $SCRIPT $PRECISION
    ("PRECISION=fp32 run.sh", 224, "run.sh:42 SCRIPT:-run_bert_pretrain_phase1.sh"),
    ("PRECISION=bf16 run.sh", 448, "run.sh:42 SCRIPT:-run_bert_pretrain_phase1.sh"),
    ("PRECISION=fp32 SCRIPT=run_bert_pretrain_phase2.sh run.sh", 28, "run_bert_pretrain_phase2.sh:23"),
    ("PRECISION=bf16 SCRIPT=quickstart/run_bert_pretrain_phase2.sh run.sh", 56, "run_bert_pretrain_phase2.sh:28"),
    # intel/ai-reference-models v3.4.1, models_v2/pytorch/bert_large/training/cpu
    ("DDP=false TRAINING_PHASE=1 PRECISION=fp32 run_model.sh", 224, "run_model.sh:25 ${batch_size:-224}"),
    ("DDP=false TRAINING_PHASE=1 PRECISION=bf16 run_model.sh", 224, "run_model.sh:25, before :81 ${batch_size:-448}"),
    ("DDP=true TRAINING_PHASE=1 PRECISION=bf16 run_model.sh", 224, "run_model.sh:42, before :81 ${batch_size:-448}"),
    ("DDP=false TRAINING_PHASE=2 PRECISION=fp32 run_model.sh", 28, "run_model.sh:30 ${batch_size:-28}"),
    ("DDP=true TRAINING_PHASE=2 PRECISION=bf16 run_model.sh", 28, "run_model.sh:46, before :81 ${batch_size:-448}"),
    ("batch_size=32 DDP=false TRAINING_PHASE=1 PRECISION=bf16 run_model.sh", 32, "run_model.sh:25"),
]


@each_row(("line", "batch", "source"), INTEL_BATCHES)
def test_the_batches_of_intels_scripts(line: str, batch: int, source: str) -> None:
    (phase,) = translated(f"DATASET_DIR=d OUTPUT_DIR=o {line}").phases
    assert (phase["batch"].value, phase["length"].value) == (batch, 512 if "2.sh" in line or "=2" in line else 128)
    # :62 of both scripts (v3.0.0): --max_steps=13700 --max_samples_termination=4500000
    ends = phase["end_after"].value if "end_after" in phase else 13700
    assert (phase["steps"].value, ends) == (13700, 10045 if batch == 448 else 13700), source
    # --learning_rate=3.5e-4 --warmup_proportion=0.0 --target_mlm_accuracy=0.720
    rates = [phase[name].value for name in ("learning_rate", "warmup", "target_accuracy")]
    assert rates == [3.5e-4, 0.0, 0.72]


def test_variables_that_no_script_of_intel_reads_have_no_effect() -> None:
    line = "DATASET_DIR=d OUTPUT_DIR=o PRECISION=fp32 BATCH_SIZE=9"
    for script in ("run_bert_pretrain_phase1.sh", "DDP=false TRAINING_PHASE=1 run_model.sh"):
        made = translated(f"{line} {script}")
        assert made.phases[0]["batch"].value == 224
        assert any("BATCH_SIZE" in remark and "batch_size" in remark for remark in made.remarks)


def test_intels_program_for_gpus_has_defaults_of_its_own() -> None:
    """gpu/run_pretrain_mlperf.py:431, :435, :451, :455; the first ten updates are not timed (:1236)."""
    needed = "run_pretrain_mlperf.py --input_dir d --output_dir o --do_train"
    on_gpu, on_cpu = translated(f"{needed} --device xpu --lamb"), translated(needed)
    for made, batch, scored, steps in ((on_gpu, 8, 16, 218_880), (on_cpu, 18, 128, 1536)):
        phase = made.phases[0]
        assert (phase["batch"].value, made.sections["evaluate.batch"].value) == (batch, scored)
        assert phase["steps"].value == steps and "target_accuracy" not in phase, "no score before the end"
    timed = translated(f"{needed} --device xpu --adamw --num-iterations 10").phases[0]
    assert timed["end_after"].value == 20
    # gpu/bert_converge.sh
    rates = "--learning_rate=2e-4 --min_learning_rate=9e-6 --max_steps=1313280 --max_steps_for_scheduler=1094400"
    made = translated(f"{needed} --lamb --converge --workers 4 {rates} --max_steps 1000")
    phase = made.phases[0]
    assert (phase["steps"].value, phase["end_after"].value) == (1_094_400, 1000)
    assert phase["schedule"].value == {"kind": "linear", "floor": pytest.approx(0.045)}


GPU_BATCHES = [
    # intel/ai-reference-models @00d303e, models_v2/pytorch/bert_large/training/gpu/run_model.sh
    ("PLATFORM=Max NUM_DEVICES=1", 16, None, "run_model.sh:40 ${BATCH_SIZE:-16}"),
    ("PLATFORM=Arc NUM_DEVICES=1", 4, None, "run_model.sh:50 ${BATCH_SIZE:-4}"),
    ("PLATFORM=Max NUM_DEVICES=8 BATCH_SIZE=32", 256, 123, "run_model.sh:105 -np ${NUM_DEVICES}, :119 --seed 123"),
]


@each_row(("line", "batch", "seed", "source"), GPU_BATCHES)
def test_intels_script_for_gpus(line: str, batch: int, seed: int | None, source: str) -> None:
    made = translated(f"DATASET_DIR=d OUTPUT_DIR=o MULTI_TILE=False {line} run_model.sh")
    (phase,) = made.phases
    assert (phase["batch"].value, phase["end_after"].value) == (batch, 20), source  # :42 NUM_ITERATIONS:-10, and ten
    assert (made.sections["optim.kind"].value, made.sections["train.precision"].value) == ("adamw", "bf16")
    assert (made.sections["train.seed"].value if "train.seed" in made.sections else None) == seed


def test_a_target_counts_where_the_original_scores_before_its_end() -> None:
    """cpu/run_pretrain_mlperf.py:660 and :855."""
    needed = "run_pretrain_mlperf.py --input_dir d --output_dir o --do_train --train_batch_size 100 --max_steps 1000"
    for start, target in ((50_000, 0.72), (100_001, None)):
        made = translated(f"{needed} --eval_iter_samples 1050 --eval_iter_start_samples {start}")
        found = made.phases[0].get("target_accuracy")
        assert (found and found.value) == target
        assert ("train.evaluate_every" in made.sections) == (target is not None)
        assert target is None or made.sections["train.evaluate_every"].value == 11


def test_the_gpus_of_nvidias_script_of_2024_are_those_of_the_machine() -> None:
    """scripts/run_pretraining.sh:20 num_gpus=${4:-$(nvidia-smi -L | wc -l)}; :136 precision = "tf32" passes nothing."""
    common = "0.2843 7038 200 false true true 64 42 bert_lamb_pretraining true false 4096 4e-3 0.128 1563 256"
    made = translated(f"bash run_pretraining.sh 8192 6e-3 tf32 4 {common}")
    assert [phase["batch"].value for phase in made.phases] == [32768, 16384]
    assert "train.precision" not in made.sections and any("tf32" in remark for remark in made.remarks)
