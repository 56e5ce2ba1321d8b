"""Places as files: mistakes with their lines, and which target a place is of."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job

CLUSTER = 'kind = "slurm"\ngpus = 4\n\n[prepare]\ntasks = 2\n'


@each_row(
    ("text", "settings", "says"),
    [
        ('kind = "slurm"\ngpu = 4\n', [], "mine.toml:2: gpu: unknown key 'gpu'; did you mean 'gpus'?"),
        (CLUSTER, ["prepare.task=3"], "command line: prepare.task: unknown key 'task'; did you mean 'tasks'?"),
        (CLUSTER + "[hardware]\ncore = 9\n", [], "mine.toml:7: core: unknown key 'core'; did you mean 'cores'?"),
        (CLUSTER, ["nodes=0"], "command line: nodes: 0 must be 1 or more"),
        (CLUSTER, ["time=soon"], 'command line: time: write it like "90" (minutes), "12:00:00" or "2-12:00:00"'),
        (CLUSTER, ["prepare.memory=4GB"], 'prepare.memory: write it like "64G", "500M" (got \'4GB\')'),
        ('kind = "torchrun"\n', [], "is a place of torchrun; use launch torchrun, or give another place."),
        ("gpus = 4\n", [], 'needs kind = "slurm", or give another place.'),
        ("[kind]\na = 1\n", [], 'needs kind = "slurm", or give another place.'),
        (
            CLUSTER.partition("[")[0] + "hardware = 5\n",
            [],
            "hardware is a section, not 5. Write [hardware] and its keys",
        ),
        ('kind = "slurm"\n[environment]\nA = 1\n', [], "environment.A: must be a text in quotes"),
        (
            'kind = "slurm"\nenvironment = "A=b"\n',
            [],
            "mine.toml:2: environment: is a section with names of your own, not 'A=b'; write for example "
            'environment.NAME="value"',
        ),
        (
            'kind = "slurm"\n[environment]\nMY_TOKEN = "x"\n',
            [],
            "mine.toml:2: environment: MY_TOKEN is a secret according to its",
        ),
        (CLUSTER, ['environment={"A B"="1"}'], "'A B' is not a valid name of a variable; use letters, digits and _"),
    ],
)
def test_a_mistake_is_reported_with_place_and_remedy(text: str, settings: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", str(tmp_path / "mine.toml"), settings)
    assert says in str(caught.value)


def test_a_mistake_in_hardware_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('kind = "slurm"\ngpu = 4\n\n[hardware]\ncore = 9\n')
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", str(tmp_path / "mine.toml"), ["nodes=0"])
    assert [line.partition("mine.toml:")[2] or line for line in str(caught.value).splitlines()] == [
        "5: core: unknown key 'core'; did you mean 'cores'?",
        'command line: nodes: 0 must be 1 or more. It is described as: "Number of nodes that train together."',
        "2: gpu: unknown key 'gpu'; did you mean 'gpus'?",
    ]


@each_row(
    ("target", "setting", "value"),
    [
        ("slurm", "time=12:00:00", "12:00:00"),  # a time in TOML
        ("slurm", 'time="30"', "30"),
        ("slurm", "time=30", "30"),
        ("slurm", "account=00123", "00123"),
        ("slurm", "partition=1e3", "1e3"),
        ("slurm", "environment.FLAG=true", "true"),
        ("azureml", "image.python=3.10", "3.10"),
    ],
)
def test_a_setting_that_is_text_is_taken_as_typed(target: str, setting: str, value: str) -> None:
    """A shell removes the quotes that would make it text in TOML."""
    found: Any = load_place(target, "", [setting])
    for part in setting.partition("=")[0].split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert found == value


def test_overrides_of_a_place_are_blamed_on_the_place() -> None:
    with pytest.raises(RecipeError) as caught:
        load_job(Path("smoke"), ["train.seed=3"], None, ["train.precison=fp16"], "mine.toml")
    assert str(caught.value).startswith("overrides of the place mine.toml:\ntrain.precison: unknown key")
    with pytest.raises(RecipeError) as caught:
        load_job(Path("smoke"), ["train.sed=3"], None, ["train.seed=4"], "mine.toml")
    assert str(caught.value).startswith("command line: train.sed: unknown key")
    assert load_job(Path("smoke"), ["train.seed=3"], None, ["train.seed=4"], "mine.toml").loaded.train.seed == 3


def test_an_unknown_target_and_an_unknown_place_name_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"there is no target 'slrum'; did you mean 'slurm'\?"):
        load_place("slrum")
    with pytest.raises(RecipeError, match=r"neither a file nor a place that comes with bertwright. Did you mean spr\?"):
        load_place("slurm", "sprr")
    with pytest.raises(RecipeError, match=r"cannot read the place other/mine.toml"):
        load_place("slurm", "other/mine.toml")


@each_row("nodes", ["nodes=2", 'rendezvous="node1"'])
def test_machines_of_torchrun_must_meet_somewhere(nodes: str) -> None:
    with pytest.raises(
        RecipeError, match=r'rendezvous: several nodes need a host name and a port .* such as "node1:29500"'
    ):
        load_place("torchrun", "", [nodes])


@each_row(
    ("setting", "says"),
    [
        ('environment={PROXY="http://me:planted@proxy:80"}', "environment.PROXY holds an address with a password"),
        (
            'setup=["export AWS_SECRET_ACCESS_KEY=planted"]',
            "setup.0 holds AWS_SECRET_ACCESS_KEY=..., which is the name",
        ),
        ('setup=["curl https://host/a?sig=planted -o a"]', "setup.0 holds an address with a password, a token or a"),
        ('options=["--export=ALL,HF_TOKEN=planted"]', "options.0 holds HF_TOKEN=..., which is the name of a secret"),
        ('srun=["--api-key=planted"]', "srun.0 holds api-key=..., which is the name of a secret"),
        ('setup=["huggingface-cli login --token planted"]', "setup.0 holds --token ..., which is the name of a secret"),
        (
            'srun=["--user", "me", "--password", "planted"]',
            "srun.3 holds --password ..., which is the name of a secret",
        ),
        ("setup=[\"curl -H 'Authorization: Bearer planted' host\"]", "setup.0 holds an authentication header"),
        ('environment={PGPASSWORD="planted"}', "PGPASSWORD is a secret according to its name"),
    ],
)
def test_no_text_of_a_place_holds_a_secret(setting: str, says: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", "", [setting])
    assert says in str(caught.value) and "=planted" not in str(caught.value) and ":planted" not in str(caught.value)


@each_row("words", ['"p", "--api-key=planted"', '"p", "--token", "planted"'])
def test_no_value_of_a_recipe_holds_a_secret(words: str) -> None:
    with pytest.raises(
        RecipeError, match=r"corpus\.split\.command\.\d holds -?-?\S+ ?.*, which is the name of a secret"
    ) as caught:
        load_job(Path("smoke"), [f"corpus.split.command=[{words}]"], None)
    assert "planted" not in str(caught.value)


@each_row(
    "setting",
    [
        'environment={TOKENIZERS_PARALLELISM="false", KEYBOARD="hu", PROXY="http://proxy:80"}',
        'setup=["export HF_TOKEN=$(cat ~/.hf)", "export WANDB_API_KEY=\\"$MINE\\"", "ls a?b"]',
        'srun=["--container-image=nvcr.io#nvidia/pytorch:25.01-py3"]',
    ],
)
def test_what_is_no_secret_is_taken(setting: str) -> None:
    assert load_place("slurm", "", [setting])


@each_row(
    ("target", "setting", "says"),
    [
        (
            "slurm",
            'options=["--constraint v100"]',
            'options: "--constraint ..." would be passed as one word, including',
        ),
        ("slurm", 'options=["--exclusive", "-C v100"]', 'including the space; write "-C..."'),
        (
            "slurm",
            'options=["--constraint", "v100"]',
            "options: each string is on a separate line of the script, so it must be",
        ),
        (
            "slurm",
            'srun=["--mpi pmix"]',
            '"--mpi ..." would be passed as one word, including the space; write "--mpi=..."',
        ),
        ("slurm", 'srun=[" --mpi=pmix"]', "srun: an option is empty, has spaces around it"),
        (
            "container",
            'options=["--memory 64g"]',
            'options: "--memory ..." would be passed as one word, including the space',
        ),
        ("container", 'options=[""]', "options: an option is empty"),
    ],
)
def test_an_option_and_its_value_are_one_word(target: str, setting: str, says: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_place(target, "", [setting])
    assert says in str(caught.value)


def test_options_with_spaces_and_with_following_words() -> None:
    assert load_place("slurm", "", ['options=["--comment=two words"]', 'srun=["--mpi", "pmix"]'])
    assert load_place("container", "", ['options=["--memory", "64g"]'])


@each_row(
    ("target", "settings", "product", "ranks"),
    [
        ("torchrun", ["ranks=70"], "nodes = 1 x ranks = 70", 70),
        ("slurm", ["nodes=9", "gpus=8"], "nodes = 9 x gpus = 8", 72),
        ("slurm", ["nodes=9", "gpus=8", "ranks=9"], "nodes = 9 x ranks = 9", 81),
        ("azureml", ["nodes=9", "vm_size=Standard_ND96asr_v4"], "nodes = 9 x GPUs of vm_size = 8", 72),
        ("container", ["ranks=70"], "ranks = 70", 70),
        ("kubeflow", ["nodes=9", "gpus=8"], "nodes = 9 x gpus = 8", 72),
        ("skypilot", ["accelerators=H100:70"], "accelerators = H100:70, GPUs = 70", 70),
    ],
)
def test_more_ranks_than_the_recipe_can_have_are_refused(
    target: str, settings: list[str], product: str, ranks: int
) -> None:
    """By the rule that the run itself goes by, with its key and those of the place."""
    place = load_place(target, "", settings)
    with pytest.raises(RecipeError) as caught:
        place.describe(load_job(Path("smoke"), ["train.phases.0.batch=64", "train.engine=single"], None))
    said = str(caught.value)
    assert f"train.phases.0.batch: 64 is smaller than {ranks} ranks = {ranks}; raise it or use fewer" in said
    assert f"train.engine: single supports only one process, but {ranks} ranks train" in said
    assert said.endswith(f"\nThe place has {product}. Change the place or the recipe.")


def test_a_blank_in_a_name_does_not_split_an_option_of_sbatch() -> None:
    described = load_place("slurm", "", ["nodes=2"]).describe(load_job(Path("smoke"), [], Path("runs/my run")))
    options = [shlex.split(line)[1:] for line in described.files["train.sbatch"].splitlines() if "#SBATCH" in line]
    assert ["--job-name=my run.train"] in options and ["--output=runs/my run/launch/%x-%j.log"] in options
    assert {len(words) for words in options} == {1}
    assert described.commands[0] == "corpus=$(sbatch --parsable 'runs/my run/launch/corpus.sbatch')"


def test_a_mistake_in_overridden_hardware_names_the_target() -> None:
    with pytest.raises(RecipeError) as caught:
        load_place("skypilot", "", ["hardware={gpu='h100'}", "accelerators=H100:8"])
    assert str(caught.value).startswith("skypilot: ")
