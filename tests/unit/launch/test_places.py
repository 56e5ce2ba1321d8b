"""Places as files: mistakes with their lines, and which target a place is of."""

from pathlib import Path

import pytest

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place

CLUSTER = 'kind = "slurm"\ngpus = 4\n\n[prepare]\ntasks = 2\n'


@pytest.mark.parametrize(
    ("text", "settings", "says"),
    [
        ('kind = "slurm"\ngpu = 4\n', [], "mine.toml:2: gpu: unknown key 'gpu'; did you mean 'gpus'?"),
        (CLUSTER, ["prepare.task=3"], "command line: prepare.task: unknown key 'task'; did you mean 'tasks'?"),
        (CLUSTER + "[hardware]\ncore = 9\n", [], "mine.toml:7: core: unknown key 'core'; did you mean 'cores'?"),
        (CLUSTER, ["nodes=0"], "command line: nodes: 0 must be 1 or more"),
        (CLUSTER, ["time=soon"], 'command line: time: Slurm writes it as "90" (minutes), "12:00:00" or "2-12:00:00"'),
        (CLUSTER, ["prepare.memory=4GB"], 'prepare.memory: Slurm writes it as "64G", "500M" (got \'4GB\')'),
        ('kind = "torchrun"\n', [], "is a place of torchrun; write launch torchrun, or give another place."),
        ("gpus = 4\n", [], 'needs kind = "slurm", or give another place.'),
        (
            'kind = "slurm"\n[environment]\nMY_TOKEN = "x"\n',
            [],
            "mine.toml:2: environment: MY_TOKEN is a secret by its",
        ),
        (CLUSTER, ['environment={"A B"="1"}'], "'A B' is no name of a variable; letters, digits and _ are"),
    ],
)
def test_a_mistake_says_where_it_is_and_what_is_right(
    text: str, settings: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", str(tmp_path / "mine.toml"), settings)
    assert says in str(caught.value)


def test_an_unknown_target_and_an_unknown_place_name_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"there is no target 'slrum'; did you mean 'slurm'\?"):
        load_place("slrum")
    with pytest.raises(RecipeError, match=r"neither a file nor a place that comes with bertwright. Did you mean spr\?"):
        load_place("slurm", "sprr")
    with pytest.raises(RecipeError, match=r"cannot read the place other/mine.toml"):
        load_place("slurm", "other/mine.toml")


@pytest.mark.parametrize("nodes", ["nodes=2", 'rendezvous="node1"'])
def test_machines_of_torchrun_must_meet_somewhere(nodes: str) -> None:
    with pytest.raises(RecipeError, match=r'rendezvous: several nodes need a name and a port .* such as "node1:29500"'):
        load_place("torchrun", "", [nodes])
