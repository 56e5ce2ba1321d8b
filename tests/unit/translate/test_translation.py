"""Options of other programs: what is unknown or wrong is told, and no table of a program has a gap."""

import json
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.recipe import Recipe
from bertwright.translate.draft import conversion
from bertwright.translate.program import Program, programs
from bertwright.translate.shell import parse_script, parse_words
from bertwright.translate.text import place_text, start_line, text
from bertwright.translate.translation import Translation, translate, without_secrets

NEEDED = "--input_dir d --config_file c.json --output_dir o --do_train"


def translated(line: str) -> Translation:
    return translate(parse_words(line.split()))


@each_row("name", programs())
def test_every_option_is_in_the_table_of_originals(name: str) -> None:
    program: Program = programs()[name]
    for option in program.options:
        assert program.original(option), f"originals.toml says nothing of {option}"
        becomes = program.options[option].becomes
        assert not becomes or callable(conversion(becomes))
    names = {name for place in (*program.positions, program.several) for name in place.split()} | {*program.variables}
    for remark in program.remarks:
        names |= {*remark.given, *remark.not_given, *remark.equal, *remark.other}
    assert names <= set(program.options)


@each_row(
    ("line", "said"),
    [
        (
            f"python run_pretraining.py {NEEDED} --train_batchsize 8 --max_steps many --fp16=1",
            "line 1: NVIDIA's run_pretraining.py has no option --train_batchsize; did you mean --train_batch_size?\n"
            "line 1: max_steps many: give a number, not 'many'.\n"
            "line 1: --fp16 takes no value, but '1' is given.",
        ),
        (
            "python run_pretraining.py --input_dir d --do_train",
            "line 1: NVIDIA's run_pretraining.py needs --config_file\n"
            "line 1: NVIDIA's run_pretraining.py needs --output_dir",
        ),
        (
            f"python run_pretraining.py {NEEDED} --max 128",
            "line 1: NVIDIA's run_pretraining.py has several options that begin with --max: --max_predictions_per_seq, "
            "--max_seq_length, --max_steps. Write the complete option.",
        ),
        (f"python run_pretraining.py {NEEDED} --seed", "line 1: --seed needs a value."),
        (
            f"python run_pretraining.py {NEEDED} --train_batch_size 100 --gradient_accumulation_steps 3",
            "--gradient_accumulation_steps 3: train_batch_size 100 is not divided by 3, and the original stops. Give a "
            "divisor of 100.",
        ),
        (
            "python run_pretrainig.py",
            "line 1: run_pretrainig.py is not a program that can be translated. Did you mean run_pretraining.py?",
        ),
        (
            "bash run_pretraining.sh 96 6e-3 fp64",
            "line 1: precision fp64: give one of fp16, fp32, not 'fp64'.",
        ),
        ("PRECISION=bf17 DATASET_DIR=d OUTPUT_DIR=o run.sh", "line 1: PRECISION bf17: give one of fp32, avx-fp32"),
        (
            f"python run_pretraining.py {NEEDED} --learning_rate nan",
            "line 1: learning_rate nan: give a number, not 'nan'.",
        ),
        ("python pretrain_glue.py --output_dir o --warmup_steps inf", "line 1: warmup_steps inf: give a number"),
        ("python3 sharding.py", "line 1: the Hungarian recipe's sharding.py needs --input_file\n"),
        ("bash", "line 1: bash: no program follows. Give its command line."),
    ],
)
def test_mistakes_are_reported(line: str, said: str) -> None:
    with pytest.raises(RecipeError) as error:
        translated(line)
    assert str(error.value).startswith(said)


def test_a_beginning_of_an_option_will_do_as_argparse_lets_it() -> None:
    translation = translated(f"python run_pretraining.py {NEEDED} --max_seq 128 --learn=1e-3")
    assert translation.phases[0]["length"].value == 128 and translation.phases[0]["learning_rate"].value == 1e-3


def test_script_versions_differ_in_argument_16() -> None:
    common = "bash run_pretraining.sh 4096 6e-3 fp16 8 0.2843 7038 200 false true true 64 42 job true true"
    older, newer = (translated(f"{common} {rest}") for rest in ("false 2048 4e-3", "2048 4e-3"))
    assert [t.phases[1]["batch"].value for t in (older, newer)] == [16384, 16384]
    assert newer.sections["vocab.file"].value == "vocab/vocab"
    assert older.sections["vocab.file"].value == "downloads/google-uncased-vocab.txt"


def test_onnx_runtime_argument_11_is_for_both_phases() -> None:
    translation = translated("bash run_pretraining_ort.sh 4096 6e-3 fp16 8 0.2843 7038 200 false true true 64")
    assert [phase["micro_batch"].value for phase in translation.phases] == [64, 64]
    assert any("11th argument" in remark for remark in translation.remarks)


@each_row(
    ("program", "options", "scale"),
    [
        ("run_pretraining_ort.py", "--fp16 --loss_scale 128", None),
        ("run_pretraining.py", "--fp16 --loss_scale 128", 128.0),
        ("run_pretraining.py", "--fp16 --loss_scale 0", 2.0**20),
        ("run_pretraining.py", "--amp --init_loss_scale 512", 512.0),
        ("run_pretraining.py", "--fp16 --loss_scale 128 --init_loss_scale 512", 128.0),
        ("run_pretraining.py", "--fp16 --loss_scale 65536", None),
        ("run_pretraining.py", "--loss_scale 128", "float32"),
    ],
)
def test_a_loss_scale_counts_where_the_program_reads_it(program: str, options: str, scale: float | str | None) -> None:
    made = translated(f"python {program} {NEEDED} {options}")
    precision = {"kind": "fp16", "initial_scale": scale} if isinstance(scale, float) else "fp16"
    assert made.recipe["train"].get("precision") == (None if scale == "float32" else precision)
    said = {account.option: account.keys for account in made.accounts if "scale" in account.option}
    read = program == "run_pretraining.py" and scale != "float32"
    assert all(keys == (("train.precision",) if read else ()) for keys in said.values()) and said


def test_tensorflow_options_select_the_tensorflow_program() -> None:
    line = (
        "python run_pretraining.py --input_file=tf/*.tfrecord --output_dir=o --bert_config_file=c.json --do_train=True"
    )
    translation = translated(f"{line} --train_batch_size=256 --num_train_steps=1000 --num_warmup_steps=10")
    phase = {name: key.value for name, key in translation.phases[0].items()}
    assert (phase["data"], phase["batch"], phase["steps"], phase["warmup"]) == ("tf", 256, 1000, 10)
    assert translation.sections["optim.kind"].value == "adamw"


def test_phase_2_alone_asks_for_phase_1() -> None:
    phase = f"python run_pretraining.py {NEEDED}"
    alone = translated(f"{phase} --phase2 --resume_from_checkpoint")
    assert len(alone.open) == 1 and "train.init_from" in alone.open[0]
    both = translate(parse_script(f"{phase} --max_seq_length 128\n{phase} --phase2 --seed 7"), strict=False)
    assert not both.open and [p["length"].value for p in both.phases] == [128, 512]
    assert any("--seed 7 contradicts" in remark for remark in both.remarks)


def test_start_weights_are_inspected(tmp_path: Path) -> None:
    run, stock = tmp_path / "run", tmp_path / "stock"
    (run / "train").mkdir(parents=True)
    (run / "train" / "manifest.json").write_text("{}")
    stock.mkdir()
    (stock / "config.json").write_text("{}")
    of_ours = translated(f"python run_pretraining.py {NEEDED} --init_checkpoint {run}/model_save")
    assert of_ours.sections["train.init_from"].value == str(run / "train")
    foreign = translated(f"python run_pretraining.py {NEEDED} --init_checkpoint {stock}")
    assert foreign.sections["train.init_from"].value == str(stock) and not foreign.open
    assert foreign.sections["model.config"].value == str(stock / "config.json")


@each_row("stage", [0, 1, 2, 3])
def test_the_stage_of_a_deepspeed_file_is_the_engine(tmp_path: Path, stage: int) -> None:
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": stage}}))
    translation = translated(f"deepspeed --num_gpus 2 pretrain_glue.py --output_dir o --deepspeed {tmp_path}/ds.json")
    found = translation.sections.get("train.engine")
    assert (found.value if found else None) == ({"kind": "deepspeed", "stage": stage} if stage else None)
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 4}}))
    with pytest.raises(RecipeError, match=r"ZeRO has no stage 4\. Set the stage to 0, 1, 2 or 3 in that file\."):
        translated(f"deepspeed --num_gpus 2 pretrain_glue.py --output_dir o --deepspeed {tmp_path}/ds.json")
    (tmp_path / "ds.json").write_text("nothing")
    with pytest.raises(RecipeError, match="not a DeepSpeed configuration"):
        translated(f"deepspeed --num_gpus 2 pretrain_glue.py --output_dir o --deepspeed {tmp_path}/ds.json")


@each_row(
    ("front", "settings"),
    [
        ("", {}),
        ("mpirun -n 8", {"kind": "torchrun", "nodes": 1, "ranks": 8}),
        (
            "torchrun --nnodes 2 --nproc_per_node 4 --master_addr big --master_port 1",
            {"kind": "torchrun", "nodes": 2, "ranks": 4, "rendezvous": "big:1"},
        ),
        (
            "srun -N 4 --ntasks-per-node=8 -p gpu -t 12:00:00 -c 6",
            {"kind": "slurm", "nodes": 4, "gpus": 8, "partition": "gpu", "time": "12:00:00", "cpus": 6},
        ),
        (
            "srun -N 2 --gpus-per-node=v100:8 --cpus-per-task=$SLURM_CPUS_PER_TASK",
            {"kind": "slurm", "nodes": 2, "gpus": 8},
        ),
    ],
)
def test_nodes_and_processes_are_a_place_that_launch_knows(
    front: str, settings: dict[str, str | int], tmp_path: Path
) -> None:
    translation = translated(f"{front} python run_pretraining.py {NEEDED}")
    assert translation.place == settings
    if settings:
        place = tmp_path / "place.toml"
        place.write_text(place_text(translation), encoding="utf-8")
        assert load_place(str(settings["kind"]), str(place)).kind == settings["kind"]


def test_start_command_follows_place_and_training() -> None:
    line = f"python run_pretraining.py {NEEDED}"
    assert start_line(translated(line), "r.toml") == "bertwright run r.toml --out o"
    parallel = translated(f"mpirun -n 4 {line}")
    assert start_line(parallel, "r.toml") == "bertwright launch torchrun r.toml --set nodes=1 --set ranks=4 --out o"
    assert start_line(parallel, "r.toml", "p.toml") == "bertwright launch torchrun r.toml --place p.toml --out o"
    data = translate(parse_script("python bertPrep.py --action sharding --dataset wikicorpus_en"), strict=False)
    assert start_line(data, "r.toml") == "bertwright run r.toml --until examples"


@each_row(
    ("dump", "language"), [("huwiki-latest-pages.xml.bz2", "hu"), ("/d/be_x_oldwiki-20260101.xml.bz2", "be-x-old")]
)
def test_the_language_is_that_of_the_dumps_database(dump: str, language: str) -> None:
    data = translate(parse_words(["python", "WikiExtractor.py", dump]), strict=False)
    assert data.sections["corpus.language"].value == language


@each_row(
    ("command", "one", "micro"),
    [
        (f"run_pretraining.py {NEEDED} --train_batch_size 64 --gradient_accumulation_steps 2", 64, 32),
        (f"run_pretraining.py {NEEDED}", 32, 32),
        ("pretrain_glue.py --output_dir o --gradient_accumulation_steps 2", 16, 8),
    ],
)
def test_batch_is_open_where_processes_are_unknown(command: str, one: int, micro: int) -> None:
    translation = translated(f"deepspeed {command}")
    (phase,) = translation.phases
    assert "batch" not in phase and translation.place == {}
    assert phase["micro_batch"].value == micro
    assert ("deepspeed without --num_gpus", ()) in [account[:2] for account in translation.accounts]
    (said,) = [sentence for sentence in translation.open if sentence.startswith("batch of the phase")]
    assert f"Set it to {one} (the" in said and "a process for each GPU of a node" in said
    assert "--set ranks=NUMBER" in text(translation)
    counted = translated(f"deepspeed --num_gpus 2 {command}")
    assert counted.phases[0]["batch"].value == 2 * one and not counted.open


@each_row("action", ["create_hdf5_files", "create_tfrecord_files"])
def test_examples_of_bertprep_have_its_length_if_none_is_given(action: str) -> None:
    command = f"python bertPrep.py --action {action} --dataset wikicorpus_en"
    for words, predictions in (("", 20), (" --max_predictions_per_seq 80", 80)):
        (phase,) = translated(command + words).phases
        assert (phase["length"].value, phase["masking.max_predictions"].value) == (512, predictions)
    (phase,) = translated(f"{command} --max_seq_length 128 --masked_lm_prob 0.2").phases
    assert (phase["length"].value, phase["masking.rate"].value) == (128, 0.2)


def test_bertprep_action_without_examples_prepares_no_length() -> None:
    options = "--max_seq_length 512 --max_predictions_per_seq 80 --masked_lm_prob 0.2"
    translation = translated(f"python bertPrep.py --action sharding --dataset wikicorpus_en {options}")
    (phase,) = translation.phases
    assert phase["length"].value == 128 and "masking.rate" not in phase, "nothing says a length, so it is the default"
    assert {option for option, keys, _ in translation.accounts if not keys} >= {
        *("--max_seq_length 512", "--max_predictions_per_seq 80", "--masked_lm_prob 0.2")
    }


@each_row("name", programs())
@each_row("every", [False, True])
def test_a_command_of_any_program_is_translated_or_refused(name: str, every: bool) -> None:
    program = programs()[name]
    words = [program.scripts[0]]
    for option, known in program.options.items():
        if option in program.unnamed or not (known.required or every):
            continue
        example = {"int": "8", "float": "0.5", "switch": "true", "flag": ""}.get(known.type, "x")
        words += [f"--{option}", *([known.choices[0] if known.choices else example] if example else [])]
    places = [place for place in program.positions if any(program.options[n].required for n in place.split())]
    variables = {option: "x" for option in program.unnamed if program.options[option].required}
    (command,) = parse_words([*words, *("x" for _ in places)])
    try:
        translation = translate([command._replace(variables=variables)])
    except RecipeError:
        return
    assert text(translation) and start_line(translation, "r.toml") and translation.recipe


ALONE = [name for name, program in programs().items() if program.phase == "data" and name != "formatting"]
"""Steps of the data that say something of the run; formatting.py says nothing, which is an error."""


@each_row("name", ALONE)
def test_the_command_for_a_step_of_the_data_alone_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a text in place of TEXT, if no option names it, and the vocabulary that an option names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vocab").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    (tmp_path / "text.txt").write_text("Egy mondat.\nMég egy.\n")
    program, words = programs()[name], list[str]()
    for option, known in program.options.items():
        if option == "vocab_file" or (known.required and option not in program.unnamed):
            values = {"vocab_file": "vocab", "action": "create_hdf5_files", "input_file": "text.txt"}
            values["dataset"] = "wikicorpus_en"
            words += [f"--{option}", values.get(option, {"int": "8", "float": "0.5"}.get(known.type, "x"))]
    places = [place for place in (*program.positions, program.several) if place]
    given = ["text.txt" for place in places if any(program.options[n].required for n in place.split())]
    translation = translated(" ".join([program.scripts[0], *words, *given]))
    verb, start = start_line(translation, "r.toml").split()[1:3]
    (tmp_path / "r.toml").write_text(text(translation), encoding="utf-8")
    overrides = [word for word in start_line(translation, "r.toml").split()[3:] if "=" in word]
    assert (verb, start) == ("run", "r.toml") and start_line(translation, "r.toml").endswith("--until examples")
    assert overrides == (["corpus.source=TEXT"] if translation.lacks_text else [])
    recipe = Recipe.load("r.toml", [word.replace("TEXT", "text.txt") for word in overrides])
    (phase,) = recipe.train.phases
    assert recipe.corpus is not None and phase.micro_batch == "auto", "no machine has memory for the published batch"


def test_secrets_of_commands_appear_in_no_output() -> None:
    script = f"""
    az login --service-principal -p S3cret1
    wget https://me:S3cret2@host/dump.bz2
    export INPUT=https://me:S3cret3@host/data?sig=S3cret4
    mpirun -n 2 -x HF_TOKEN=S3cret5 -x PGPASSWORD=S3cret6 -x api_key=S3cret7 \\
        -genv AWS_SECRET S3cret8 -env DB_PASSWORD S3cret9 -env MY_KEY=S3cret10 -genv OMP_NUM_THREADS 4 \\
        python run_pretraining.py {NEEDED} --input_dir=$INPUT
    """
    translation = translate(parse_script(script), strict=False)
    assert translation.left == ("line 2: az", "line 3: wget") and translation.launch.ranks == 2
    assert dict(translation.launch.machine)["genv"] == "OMP_NUM_THREADS 4"
    assert "S3cret" not in text(translation) + place_text(translation) + json.dumps(translation.facts())
    assert translation.phases[0]["data"].value == "https://host/data" and "was removed here" in translation.open[-1]
    plain = translated(f"python run_pretraining.py {NEEDED} --max_seq_length 128")
    assert not plain.open and plain.commands == (f"python run_pretraining.py {NEEDED} --max_seq_length 128",)


def test_option_with_replaced_key_has_no_effect_and_a_reason() -> None:
    phase = f"python run_pretraining.py {NEEDED}"
    both = translate(parse_script(f"{phase} --max_seq_length 128\n{phase} --phase2 --init_checkpoint w"), strict=False)
    (account,) = [account for account in both.accounts if account.option.startswith("--init_checkpoint")]
    assert account.keys == () and account.note == "a phase goes on from the one before it"


def test_warmup_before_the_first_step_is_kept() -> None:
    command = "python run_pretrain_mlperf.py --input_dir d --output_dir o --max_steps=600 --warmup_steps=287"
    (phase,) = translated(f"{command} --start_warmup_step=-76").phases
    assert phase["schedule"].value == {"kind": "poly_nvidia", "power": 1.0, "warmup_before": 76}
    (phase,) = translated(f"{command} --start_warmup_step=0").phases
    assert phase["schedule"].value == "linear"


def test_googles_switches_take_true_as_a_value() -> None:
    command = "python create_pretraining_data.py --input_file=a.txt --output_file=tf --vocab_file=v.txt"
    sections = translated(f"{command} --do_lower_case=True --do_whole_word_mask=False").sections
    assert sections["vocab.lower_case"].value is True
    assert "vocab.lower_case" not in translated(f"{command} --do_lower_case=False").sections


def test_warm_up_steps_below_1_are_a_share_as_in_the_trainer() -> None:
    command = "python pretrain_glue.py --output_dir o"
    for typed, wanted in (("0.1", 0.1), ("20", 20)):
        (phase,) = translated(f"{command} --warmup_steps {typed}").phases
        assert phase["warmup"].value == wanted


def test_self_referring_variable_is_kept() -> None:
    line = "DATASET_DIR=$DATASET_DIR OUTPUT_DIR=out PRECISION=fp32 bash run_bert_pretrain_phase1.sh"
    assert "$DATASET_DIR" in repr(translated(line).phases)


def test_every_shard_of_several_commands_is_in_the_corpus() -> None:
    line = "python create_pretraining_data.py --output_file=tf --vocab_file=v.txt --input_file="
    script = f"{line}shard_0.txt\n{line}shard_1.txt,shard_2.txt\n{line}shard_0.txt"
    translation = translate(parse_script(script), strict=False)
    assert translation.sections["corpus.source"].value == [
        {"path": f"shard_{number}.txt", "lines": "sentences"} for number in range(3)
    ]
    assert translated(f"{line}a.txt").sections["corpus.source"].value == {"path": "a.txt", "lines": "sentences"}


def test_trainer_steps_precede_epochs() -> None:
    for typed, wanted in (("--max_steps 100", {"steps": 100}), ("--max_steps -1 --num_train_epochs 2", {"epochs": 2})):
        (phase,) = translated(f"python pretrain_glue.py --output_dir o {typed}").phases
        assert {name: key.value for name, key in phase.items() if name in ("steps", "epochs")} == wanted


@each_row(
    ("line", "said"),
    [
        (
            f"python run_pretraining.py {NEEDED} --train_batch_size 0",
            "--train_batch_size 0: with 0 nothing would be trained on. Give 1 or more.",
        ),
        (f"python run_pretraining.py {NEEDED} --train_batch_size=-8", "--train_batch_size=-8: with -8 nothing would"),
        ("bash run_pretraining.sh 0 6e-3 fp16 8 0.1 10 20", "--train_batch_size=0: with 0 nothing would be trained on"),
        (
            "python run_pretrain_mlperf.py --input_dir d --output_dir o --train_batch_size 0 --max_steps 9",
            "--train_batch_size 0: with 0 nothing would be trained on.",
        ),
        (
            "python pretrain_glue.py --output_dir o --per_device_train_batch_size -1",
            "--per_device_train_batch_size -1: with -1 nothing would be trained on.",
        ),
        (
            "python pretrain_glue.py --output_dir o --gradient_accumulation_steps 0",
            "--gradient_accumulation_steps 0: with 0 nothing would be trained on.",
        ),
    ],
)
def test_a_batch_without_sequences_is_refused_by_its_option(line: str, said: str) -> None:
    """The global batch is a divisor of other numbers."""
    with pytest.raises(RecipeError) as error:
        translated(line)
    assert str(error.value).startswith(said)


def test_script_without_training_has_nothing_to_translate() -> None:
    for script in ("", "cd x\nrm -r y; curl z; pip install a\nconda activate b; build.sh"):
        with pytest.raises(RecipeError, match="no command"):
            translate(parse_script(script), strict=False)
    with pytest.raises(RecipeError, match="line 1: cd"):
        translate(parse_script("cd x"))  # alone, it may be a mistake


def test_environment_setup_is_skipped() -> None:
    lines = ["source venv/bin/activate", ". /opt/setvars.sh", ".", "conda activate a", "module load b", "ml c"]
    translation = translate(parse_script("\n".join([*lines, f"python run_pretraining.py {NEEDED}"])), strict=False)
    names = ("activate", "setvars.sh", ".", "conda", "module", "ml")
    assert translation.left == tuple(f"line {number}: {name}" for number, name in enumerate(names, 1))
    script = "source run_pretraining.sh 4096 6e-3 fp16 8 0.2843 7038 200 false true true 64"
    assert translate(parse_script(script), strict=False).phases[0]["batch"].value == 8 * 4096
    with pytest.raises(RecipeError, match="line 1: venv/bin/activate is not a program"):
        translated("source venv/bin/activate")


def test_given_start_asks_only_for_its_location(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "manifest.json").write_text("{}")
    phase = f"python run_pretraining.py {NEEDED} --phase2"
    assert not translated(f"{phase} --init_checkpoint {tmp_path}/model_save").open
    (question,) = translated(f"python run_pretraining.py {NEEDED} --init_checkpoint gone").open
    assert "gone" in question


def test_a_run_to_start_from_sets_the_network_too(tmp_path: Path) -> None:
    """Intel's phase 2 takes its configuration from the checkpoint of phase 1, as transformers does."""
    (tmp_path / "train" / "model").mkdir(parents=True)
    for name in ("manifest.json", "model/config.json"):
        (tmp_path / "train" / name).write_text("{}")
    line = f"DATASET_DIR=d OUTPUT_DIR=o PRETRAINED_MODEL={tmp_path} bash run_bert_pretrain_phase2.sh bf16"
    made = translated(line)
    assert made.sections["train.init_from"].value == str(tmp_path / "train")
    assert made.sections["model.config"].value == str(tmp_path / "train" / "model" / "config.json")
    assert "model.size" not in made.sections and made.out == "o/model_save"


@each_row(
    ("start", "asks"),
    [
        ("here/model.ckpt-28252", False),
        ("here/model.ckpt-28252.index", False),
        ("here", False),
        ("gone/bert_model.ckpt", True),
        ("gone/tf1_ckpt", True),
    ],
)
def test_a_tensorflow_checkpoint_is_a_start_if_it_is_there(
    start: str, asks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    for name in ("index", "data-00000-of-00001", "meta"):
        (tmp_path / "here" / f"model.ckpt-28252.{name}").touch()
    google = "python run_pretraining.py --input_file=tf/* --output_dir=o --bert_config_file=c.json"
    made = translated(f"{google} --init_checkpoint={start}")
    assert made.sections["train.init_from"].value == start
    assert [question.partition(". ")[0] for question in made.open] == (
        [f"train.init_from = {start} is not on this machine"] if asks else []
    )


def test_a_variable_that_is_not_set_is_a_question_with_its_key() -> None:
    line = "python run_pretraining.py --input_dir $IN --config_file $C/c.json --output_dir o --do_train"
    questions = translated(line).open
    assert [question.partition(" = ")[0] for question in questions] == ["model.config", "data"]


@each_row("program", ["-m run_pretraining", "-m bert.run_pretraining", "bert/run_pretraining.py"])
def test_a_module_is_the_program_of_that_name(program: str) -> None:
    for launcher in ("python", "torchrun --nproc_per_node 2"):
        assert translated(f"{launcher} {program} {NEEDED}").phases[0]["length"].value == 512


def test_options_in_a_variable_are_options() -> None:
    script = f"OPTS='--fp16 --seed 7'\npython run_pretraining.py {NEEDED} $OPTS\n"
    sections = translate(parse_script(script), strict=False).sections
    assert sections["train.seed"].value == 7 and "fp16" in str(sections["train.precision"].value)


def test_secret_variables_are_hidden_and_others_stay() -> None:
    (command,) = parse_words(["HF_TOKEN=planted", "DATA=/data", "run.sh", "--password", "planted", "--seed", "1"])
    found = without_secrets(command)
    assert "planted" not in repr(found) and found.variables["DATA"] == "/data" and found.words[-2:] == ("--seed", "1")
    assert without_secrets(found) == found
    for words in (["srun", "--export=ALL,HF_TOKEN=planted,A=b,c"], ["srun", "--export", "ALL,HF_TOKEN=planted,A=b,c"]):
        (command,) = parse_words(words)
        found = without_secrets(command)
        assert "planted" not in repr(found) and found.words[-1].endswith(",A=b,c")
