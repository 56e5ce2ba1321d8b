"""The forecast's memory of micro-batches that are published with the GPUs that they fit on."""

from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.plan.plan import make_plan

PUBLISHED = [
    # NVIDIA's README, "Training performance results", and the presets of configurations.yml
    ("nvidia-large", "v100-16", "fp16", (16, 4)),
    ("nvidia-large", "v100-16", "fp32", (8, 2)),
    ("nvidia-large", "v100", "fp16", (64, 8)),
    ("nvidia-large", "v100", "fp32", (32, 4)),
    ("nvidia-large", "a100", "fp16", (256, 32)),
    ("nvidia-large", "a100", "tf32", (128, 16)),
    # ONNX Runtime's guide for a DGX-2, and the tables of its notebook for ND40rs_v2 and NC24rs_v3
    ("ort-dgx2", "v100", "fp16", (64, 16)),
    ("ort-dgx2", "v100", "fp16", (128, 16)),
    ("ort-azure-nc24", "v100-16", "fp16", (48, 8)),
]


@each_row(("name", "gpu", "precision", "sequences"), PUBLISHED)
def test_published_micro_batches_fit_their_gpus(
    name: str, gpu: str, precision: str, sequences: tuple[int, int]
) -> None:
    sizes = [f"train.phases.{phase}.micro_batch={size}" for phase, size in enumerate(sequences)]
    recipe = Recipe.load(name, [*sizes, f"train.precision={precision}"], given=False)
    plan = make_plan(recipe, {}, machine_of(HardwareConfig(gpu=gpu, gpus=4, cores=40)))
    assert plan["fits"], f"{plan['memory_bytes'] / 1e9:.1f} GB"
