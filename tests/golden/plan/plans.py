"""The plans whose texts are kept. `python -m tests.golden.plan.plans` writes them anew: look at what changes."""

from pathlib import Path

from bertwright import Recipe
from bertwright.cli.plan import plan_lines
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.plan.plan import make_plan

ROOT = Path(__file__).parent
PLANS = {
    "nvidia-large-h100": ("nvidia-large", HardwareConfig(gpu="h100", gpus=8, cores=104, nodes=4, price=27.5)),
    "nvidia-large-v100": ("nvidia-large", HardwareConfig(gpu="v100-16", gpus=8, cores=40, currency="EUR")),
    "demo-t4": ("demo", HardwareConfig(gpu="t4", cores=4, price=0.53)),
}


def planned(name: str, width: int = 0) -> str:
    """The text of a plan, in lines of at most `width` characters if it is not 0."""
    recipe_name, hardware = PLANS[name]
    recipe = Recipe.load(recipe_name, given=False)
    plan = make_plan(recipe, {}, machine_of(hardware))
    return "\n".join(plan_lines(recipe_name, recipe, plan, width)) + "\n"


if __name__ == "__main__":
    for name in PLANS:
        (ROOT / f"{name}.txt").write_text(planned(name), encoding="utf-8")
