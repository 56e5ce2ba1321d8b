"""What DeepSpeed is told of a recipe, beside the files of Azure's example (Azure/azureml-examples,
best-practices/largescale-deep-learning/Training/Bert-Pretrain/src: ds_config.json, ds_config_bertbase.json and
ds_config_distilbert.json, without their profiler, TensorBoard and Nebula, which are services and no settings)."""

import json
from pathlib import Path
from typing import Any

from tests.rows import each_row

from bertwright.recipe import Recipe
from bertwright.train.engine.config import DeepSpeedConfig
from bertwright.train.engine.ds_config import Step, ds_config, step_of, write_ds_config

PUBLISHED: dict[str, dict[str, Any]] = {
    "bert-large-deepspeed": {
        "train_micro_batch_size_per_gpu": 93,
        "fp16": {"enabled": True},
        "zero_optimization": {"stage": 1},
        "gradient_accumulation_steps": 1,
    },
    "bert-base-deepspeed": {
        "train_micro_batch_size_per_gpu": 532,
        "fp16": {"enabled": True},
        "zero_optimization": {"stage": 0},
        "gradient_accumulation_steps": 1,
        "train_batch_size": 8512,
    },
    "distilbert-deepspeed": {
        "train_micro_batch_size_per_gpu": 512,
        "fp16": {"enabled": True},
        "zero_optimization": {"stage": 0},
        "gradient_accumulation_steps": 2,
    },
}
NO_ZERO = {"stage": 0}
"""Of the package's stage 0, where nothing is in parts, it is `ddp` that trains so."""


@each_row("preset", PUBLISHED)
def test_deepspeed_is_told_what_the_published_files_say(preset: str) -> None:
    published = PUBLISHED[preset]
    recipe = Recipe.load("azure-glue", [f"preset={preset}"])
    if published["zero_optimization"] == NO_ZERO:
        assert recipe.train.engine.kind == "auto"
        published = {key: value for key, value in published.items() if key != "zero_optimization"}
    recipe = Recipe.load("azure-glue", [f"preset={preset}", "train.engine=deepspeed"])
    assert isinstance(recipe.train.engine, DeepSpeedConfig)
    told = ds_config(recipe.train.engine, recipe.optim, step_of(recipe.train), 16)
    assert {key: told[key] for key in published} == published
    assert told["gradient_clipping"] == recipe.optim.max_grad_norm == 1.0


@each_row(
    ("step", "ranks", "micro_batch", "accumulation"),
    [(Step(7, 2), 2, 2, 2), (Step(7), 2, 4, 1), (Step(5, 4), 3, 2, 1), (Step(64, 4), 2, 4, 8), (Step(1, 1), 4, 1, 1)],
)
def test_a_batch_that_ranks_do_not_divide_is_told_as_the_next_that_they_do(
    step: Step, ranks: int, micro_batch: int, accumulation: int
) -> None:
    recipe = Recipe.load("smoke", [])
    told = ds_config(DeepSpeedConfig(stage=3), recipe.optim, step, ranks)
    assert told["train_micro_batch_size_per_gpu"] == micro_batch
    assert told["gradient_accumulation_steps"] == accumulation
    assert told["train_batch_size"] == micro_batch * accumulation * ranks >= step.batch
    assert told["zero_optimization"] == {"stage": 3} and "fp16" not in told


def test_a_user_can_read_what_deepspeed_is_told(tmp_path: Path) -> None:
    for engine in ("ddp", '{kind="deepspeed", stage=2}'):
        recipe = Recipe.load("smoke", [f"train.engine={engine}", 'optim={kind="adamw"}'])
        write_ds_config(tmp_path, recipe.train, recipe.optim, 2)
        assert (tmp_path / "ds_config.json").exists() == (engine != "ddp")
    told = json.loads((tmp_path / "ds_config.json").read_text())
    assert told["zero_optimization"] == {"stage": 2} and told["train_batch_size"] == recipe.train.phases[0].batch
