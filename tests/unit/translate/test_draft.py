"""Keys of several commands in one draft: which value counts, and what is remarked on."""

from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.azure_job import read_job
from bertwright.translate.command import Command, parse_arguments
from bertwright.translate.draft import Account, Draft, nest
from bertwright.translate.launchers import Launch
from bertwright.translate.program import Option, Program, Remark
from bertwright.translate.translation import translate


def command(line: str = "", phase: str = "training", recipe: dict[str, Any] | None = None, **keys: Any) -> Command:
    """A command of an invented program, whose options have no keys of their own."""
    options = {"a": Option(type="int"), "b": Option(type="int", default=2), "out": Option()}
    values: dict[str, Any] = {"title": "it", "scripts": ("it.py",), "explained": (), "phase": phase}
    program = Program(**values, options=options, recipe=recipe or {}, **keys)
    return Command(program, parse_arguments(program, tuple(line.split()), {}), Launch(), f"it.py {line}")


def drafted(*commands: Command) -> Draft:
    draft = Draft()
    for each in commands:
        draft.add(each)
    return draft


PHASE = "train.phases.0."


def test_training_commands_are_phases_and_preparation_is_lengths() -> None:
    train = {f"{PHASE}length": 128, "train.seed": 1}
    data = {f"{PHASE}length": 512}
    draft = drafted(command(recipe=train), command(recipe=data), command(phase="data", recipe=data))
    assert [phase["length"].value for phase in draft.phases] == [128, 512]
    assert [phase["length"].value for phase in draft.prepared] == [512] and draft.value("train.seed") == 1
    assert drafted(command(phase="data", recipe={"corpus.language": "hu"})).prepared == [], "it decides no length"
    assert draft.value("train.unknown") is None


def test_first_command_wins_and_contradictions_are_remarked() -> None:
    first, second = {"train.seed": [1, "--seed 1"]}, {"train.seed": [2, "--seed 2"], "optim.kind": ["lamb", "--lamb"]}
    draft = drafted(command(recipe=first), command(recipe=second))
    assert draft.value("train.seed") == 1 and draft.value("optim.kind") == "lamb"
    (remark,) = draft.remarks
    assert remark.startswith("--seed 2 contradicts --seed 1") and "train.seed" in remark
    assert drafted(command(recipe=first), command(recipe=first)).remarks == [], "it says the same"
    prepared = drafted(command(phase="data", recipe=first), command(recipe=second))
    assert (prepared.value("train.seed"), prepared.remarks) == (2, []), "no phase was trained with the first"
    other = drafted(command(recipe={"model.size": 1}), command(recipe={"model.size": 2}))
    assert (other.value("model.size"), other.remarks) == (2, [])


def test_only_the_commands_that_make_data_know_its_vocabulary() -> None:
    keys = {"vocab.file": "v.txt", "vocab.lower_case": True, "train.seed": 1}
    training = drafted(command(recipe=keys)).keys
    assert set(training) == {"assumed.vocab.file", "assumed.vocab.lower_case", "train.seed"}
    assert training["assumed.vocab.file"].key == "assumed.vocab.file"
    assert set(drafted(command(phase="data", recipe=keys)).keys) == set(keys)


def test_later_phase_continues_the_previous_one() -> None:
    key = "train.init_from"
    assert drafted(command(), command(recipe={key: "x"})).value(key) is None
    assert drafted(command(recipe={key: "x"}), command()).value(key) == "x"


A, B, C = ({"path": name, "lines": "sentences"} for name in "abc")


@each_row(
    ("first", "second", "both"),
    [
        (A, B, [A, B]),
        ([A, B], [B, C], [A, B, C]),
        (A, A, A),
        ([A, B], B, [A, B]),
        ("dump.bz2", A, A),  # the second reads what the first wrote
        (A, "dump.bz2", "dump.bz2"),
    ],
)
def test_sources_of_one_form_are_read_together(first: Any, second: Any, both: Any) -> None:
    found = drafted(*(command(phase="data", recipe={"corpus.source": [each, "w"]}) for each in (first, second)))
    assert found.value("corpus.source") == both


def test_every_option_that_was_given_has_one_account() -> None:
    draft = drafted(command("--a 1"), command("--a 1 --b 3"))
    assert draft.accounts == [Account("--a 1", (), ""), Account("--b 3", (), "")], "and defaults have none"


def test_unread_script_arguments_are_accounted_for() -> None:
    draft = drafted(command("--a 1"))
    script = command("--a 1 --b 3 --out o", phase="data")
    draft.account_for_script(script, passed={"a", "out"})
    assert [account.option for account in draft.accounts] == ["--b 3"], "--a is told by what it is passed to"
    assert draft.accounts[0].note


@each_row(
    ("remark", "line", "fits"),
    [
        ({}, "", True),
        ({"given": ("a",)}, "--a 1", True),
        ({"given": ("a",)}, "--a 1 --b 1", True),
        ({"given": ("a", "b")}, "--a 1", False),
        ({"not_given": ("a",)}, "--b 1", True),
        ({"not_given": ("a", "b")}, "--b 1", False),
        ({"equal": {"b": 2}}, "", True),
        ({"equal": {"b": 2, "a": 1}}, "--a 3", False),
        ({"other": {"b": 2}}, "", False),
        ({"other": {"b": 2}}, "--b 3", True),
    ],
)
def test_a_remark_has_conditions(remark: dict[str, Any], line: str, fits: bool) -> None:
    given = command(line, remarks=(Remark(text="wrong there", **remark),))
    assert drafted(given, given).remarks == (["wrong there"] if fits else []), "and is made once"
    draft = Draft()
    draft.account_for_script(given, set())
    assert draft.remarks == (["wrong there"] if fits else [])


def test_dotted_keys_nest_and_conflicts_are_refused() -> None:
    assert nest({"a.b": 1, "a.c.d": 2, "e": [3]}) == {"a": {"b": 1, "c": {"d": 2}}, "e": [3]}
    with pytest.raises(RecipeError, match=r"^a\.b\.c: b "):
        nest({"a.b": 1, "a.b.c": 2})


JOB = """\
command: python pretrain_glue.py --output_dir o {option}
compute: azureml:gpu-cluster
services:
  board: {{job_service_type: tensor_board, properties: {{logDir: {shown}}}}}
"""


def told(shown: str, option: str = "--tensorboard_log_dir logs/runs", job: str = JOB) -> list[str]:
    made = translate(read_job(job.format(shown=shown, option=option)), strict=False)
    return [remark for remark in made.remarks if "TensorBoard" in remark]


def test_a_service_that_shows_another_folder_is_named_with_both() -> None:
    (remark,) = told("outputs/runs/", "")
    assert remark.startswith(
        "services.board.logDir outputs/runs/ is not the folder that events are written to, /outputs/runs/ "
        "(--tensorboard_log_dir left at its default), so TensorBoard shows nothing in the original."
    )
    new = JOB.replace("job_service_type", "type").replace("properties: {{logDir: {shown}}}", "log_dir: {shown}")
    (remark,) = told("logs", job=new)
    assert remark.startswith("services.board.log_dir logs is not") and "(--tensorboard_log_dir logs/runs)" in remark


@each_row("shown", ["logs/runs", "logs/runs/", "./logs/runs", "$HOME/runs", "''"])
def test_equal_and_unknown_folders_do_not_contradict(shown: str) -> None:
    assert told(shown) == []


def test_folders_of_other_services_are_none_of_tensorboard() -> None:
    assert told("other", job=JOB.replace("tensor_board", "jupyter_lab")) == []
    assert told("other", '--tensorboard_log_dir "$LOGS"') == []
