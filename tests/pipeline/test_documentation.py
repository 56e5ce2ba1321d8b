"""Everything that the documents tell people to type works: commands, recipe excerpts and Python."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from safetensors.torch import load_file
from tests.pipeline.command import RECIPES, ROOT
from tests.pipeline.conftest import Call
from tests.reference.bundles import write_google
from tests.reference.teachers import SPECIALS, write_stock
from tests.rows import each_row
from tests.server import serving
from tests.unit.bench.test_bench_verb import OURS, PEER
from tests.unit.cluster import cluster
from tests.unit.finetune.test_draft import data_of
from tests.unit.init.test_continued import ENGLISH, HUNGARIAN, words_of
from tests.unit.init.test_continued import network as write_network
from tests.unit.init.test_continued import text as text_of
from torch.distributed.run import parse_args

from bertwright import Recipe
from bertwright.bench import run as bench_run
from bertwright.cli import app
from bertwright.cli.conversion import convert
from bertwright.cli.narrator import CHAPTERS
from bertwright.cli.options import Listening
from bertwright.core.files import make_folder
from bertwright.corpus.config import SplitConfig
from bertwright.corpus.program import split_paragraphs
from bertwright.corpus.sources.format import SourceFormat
from bertwright.corpus.wikitext.templates import read_table, templates_of
from bertwright.estimate.machine import read_place
from bertwright.estimate.measure import measure
from bertwright.export.runtimes.llama_cpp_converter import GET, sources
from bertwright.formats.format import Format
from bertwright.formats.target import Target
from bertwright.launch.config import TARGETS as LAUNCHED
from bertwright.launch.config import load_place
from bertwright.launch.wheel import WHEEL
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.classifier import Classifier
from bertwright.model.family import ANSWERS, Head
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.pipeline.stage import STAGES
from bertwright.sample import SMALL as SAMPLE
from bertwright.shipped import schema_file, shipped
from bertwright.trial.attempt import Tried
from bertwright.trial.autotune import machine_here, open_table
from bertwright.trial.search import Candidate, Trial
from bertwright.vocab import download as vocabularies
from bertwright.vocab.split import build_tokenizer

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])
CHEAP = ("corpus.source=sample-small", "corpus.language=hu", 'corpus.filter.languages=["hu", "en"]', "corpus.workers=1")
DATA_STAGES = ("corpus", "vocab", "examples")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
RANK = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "2", "JOB_COMPLETION_INDEX": "0"}
"""Variables by which schedulers tell a rank its number."""


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def every(language: str) -> list[tuple[str, str]]:
    """Every code block of a language, with its document."""
    return [(path.relative_to(ROOT).as_posix(), block) for path in DOCUMENTS for block in blocks(path, language)]


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of every shell block and every cluster job, with its document."""
    for document, block in every("(?:sh|bash|shell|console)"):
        for line in block.replace("\\\n", " ").splitlines():
            if shlex.split(line, comments=True):
                yield document, line
    for document, block in every("yaml"):
        yield from ((document, line) for line in re.findall(r'"(bertwright [^"]*)"', block))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout to the commands typed in it."""
    return work_in(tmp_path, monkeypatch)


def work_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes").symlink_to(RECIPES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("document", "line"), list(commands()))
def test_every_command_works(
    document: str,
    line: str,
    workplace: Path,
    call: Call,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in RANK.items():
        monkeypatch.setenv(name, value)
    words = [os.path.expandvars(word) for word in shlex.split(line, comments=True) if word != "$"]
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        variable, _, value = words.pop(0).partition("=")
        if "translate" in words:  # the only verb that takes them
            monkeypatch.setenv(variable, value)
    program, arguments = Path(words[0]).name or words[0], words[1:]
    match program:
        case "make":  # tests of the parts cover what a target does
            targets = [word for word in arguments if "=" not in word]
            assert set(targets) <= TARGETS, f"the Makefile has no such target: {line}"
        case ".":
            assert arguments == [".venv/bin/activate"]
        case "python" if arguments[:2] == ["-m", "pytest"]:  # those of a GPU are skipped without one
            paths = arguments[4:] if arguments[2:4] == ["-m", "gpu"] else arguments[2:]
            assert paths and all((ROOT / path).exists() for path in paths)
        case "python":  # tests/unit/sample, and test_schemas.py compare its output
            assert arguments in (["-m", "tools.sample.build"], ["-m", "tools.schemas"])
        case "pip" if arguments[:2] == ["install", "torch"]:
            assert arguments[2:] == ["--index-url", CPU_INDEX]
        case "pip" if arguments[0] == "wheel":  # tests/pipeline/test_installed.py builds it
            assert arguments == ["wheel", "--no-deps", "--wheel-dir", "dist", "."]
        case "pip" if arguments[0] == "download":  # `make setup` downloads it for tests
            assert f" {' '.join(arguments[:-1])} " in " ".join(GET.split()).replace("pip download", " download")
        case "tar":
            assert line.split("#")[0].strip() in GET
        case "python3":  # an environment, with pip in it on the same line
            assert arguments[:4] == ["-m", "venv", "bert", "&&"] and arguments[4:6] == ["bert/bin/pip", "install"]
            assert arguments[-1] == f"dist/{WHEEL}[hf]" and arguments[-3:-1] == ["--extra-index-url", CPU_INDEX]
        case "uvx":
            assert arguments[-4:] == ["--from", f"dist/{WHEEL}[hf]", "bertwright", "demo"]
            assert options_of("uvx", "--help") >= {word for word in arguments if word.startswith("--")}
        case "pipx":
            assert arguments[0] == "run" and arguments[-4:] == ["--spec", f"dist/{WHEEL}[hf]", "bertwright", "demo"]
            given = {word.partition("=")[0] for word in arguments if word.startswith("--")}
            assert options_of("pipx", "run", "--help") >= given
        case "pip":  # a test installs nothing
            assert arguments[0] == "install" and len(arguments) > 1
            for word in arguments[
                1 + (arguments[1] == "--no-compile") :
            ]:  # no package index has bertwright: the repository, a wheel, or what is installed
                what, extra = re.fullmatch(r"(\.|bertwright|dist/.*)\[(.*)\]", word).groups()
                assert what in (".", "bertwright", f"dist/{WHEEL}") and extra in EXTRAS, f"no such extra: {line}"
                assert what != "bertwright" or document != "docs/install.md", (
                    "the first installation is from what exists"
                )
        case "npm":  # `make setup` installs it for tests
            packages = json.loads((ROOT / "tools" / "node" / "package.json").read_text(encoding="utf-8"))
            assert arguments[0] == "install" and set(arguments[1:]) <= set(packages["dependencies"])
        case "git":  # the data sets that a guide trains on
            assert arguments[0] == "clone" and re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+", arguments[1])
        case "mkdir":
            assert len(arguments) == 1
        case "cat":  # tests/pipeline/test_hungarian_guide.py reads what it joins
            assert arguments[-2] == ">"
        case "cp":
            provide(Path(arguments[1]), request)
            assert arguments[0] == "-r" and Path(arguments[1]).is_dir()
        case "taplo":  # with the schema and the rule of the same guide
            taplo = shutil.which("taplo", path=Path(sys.executable).parent)
            if taplo is None:
                pytest.skip("taplo is not installed: pip install taplo")
            shutil.copy(schema_file("recipe"), "recipe.schema.json")
            (rule,) = (block for _, block in every("toml") if "[[rule]]" in block)
            Path(".taplo.toml").write_text(rule, encoding="utf-8")
            done = subprocess.run(
                [taplo, *arguments[:1], *map(str, Path().glob(arguments[1]))], capture_output=True, text=True
            )
            assert done.returncode == 0 and "excluded=0" in done.stderr, done.stderr
        case "dask":  # `tests.unit.cluster` starts the cluster of the tests
            assert {word for word in arguments if word.startswith("--")} <= options_of_dask(arguments[0])
        case "docker" if arguments[0] == "build":  # tests/containers builds the image
            given = {word.partition("=")[0] for word in arguments if re.fullmatch(r"[A-Z_]+=.*", word)}
            dockerfile = (ROOT / arguments[arguments.index("--file") + 1]).read_text(encoding="utf-8")
            assert given <= set(re.findall(r"(?:ARG|\s)([A-Z_]+)=", dockerfile)), f"no such argument: {line}"
        case "docker":  # tests/containers checks how the image's entry point handles such variables
            assert arguments[0] == "run" and arguments[-1] == "bertwright:cpu"
            for word in arguments:
                if re.fullmatch(r"[A-Z_]+=.*", word):
                    monkeypatch.setenv(*word.split("=", 1))
            done = call("translate", "--environment")
            assert done.code == 0, done.err
        case "torchrun":  # the command it starts is checked by itself
            asked = parse_args(arguments)
            assert asked.module and asked.training_script == "bertwright.cli", line
            for cheap_one in cheap(asked.training_script_args, workplace, request):
                done = call(*cheap_one)
                assert done.code == 0, done.err
        case "bertwright":
            # Output that the command line redirects to a file is printed instead.
            arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
            for cheap_one in cheap(arguments, workplace, request):
                done = call(*cheap_one)
                assert done.code == 0, done.err
        case _:
            pytest.fail(f"{document}: tell {Path(__file__).name} how to try out: {line}")


def drafted(recipe: str) -> list[str]:
    """The command of a guide that drafts its recipe."""
    return shlex.split(next(line for _, line in commands() if line.endswith(f"--out {recipe}")))[1:]


def options_of(*command: str) -> set[str]:
    """The options in the help of another program, which need not be installed."""
    program = shutil.which(command[0], path=Path(sys.executable).parent) or shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=True)
    return set(re.findall(r"--[a-z-]+", done.stdout))


def texts_to_learn() -> None:
    """The texts of the guide to a continued training."""
    Path("texts").mkdir()
    for name, sentences in (("texts/one.txt", ENGLISH), ("news.txt", ENGLISH[:2]), ("novels.txt", HUNGARIAN)):
        Path(name).write_text(text_of(sentences), encoding="utf-8")


def scored_sentences(file: Path) -> None:
    """Sentences with scores of how alike they are."""
    rows = [("Ez az út.", "Ez egy út.", 4.5), ("Ez az út.", "Ez a ház.", 2), ("Az út.", "Régi ház.", 0)]
    lines = ("\t".join(map(str, row)) for row in [("sentence1", "sentence2", "score"), *rows])
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def options_of_dask(what: str) -> set[str]:
    cli = pytest.importorskip(f"distributed.cli.dask_{what}", reason="Dask is not installed")
    return {option for parameter in cli.main.params for option in (*parameter.opts, *parameter.secondary_opts)}


def cheap(arguments: list[str], workplace: Path, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The same command on the small sample, offline: of a run only the first stage, of training only a check."""
    verb, *rest = arguments
    if rest and rest[0] == "continue.toml":
        (recipe,) = (block for _, block in every("toml") if 'init_from = "published"' in block)
        piece = completed(tomllib.loads(recipe))
        texts_to_learn()
        Path("continue.toml").write_text(tomli_w.dumps(piece), encoding="utf-8")
        until = ["--until", "corpus"] if verb == "run" else []
        yield [verb, *rest[:1], "corpus.filter.enabled=false", "corpus.workers=1", *until, *rest[1:]]
    elif rest and rest[0] in ("hungarian.toml", "papers.toml", "modern.toml"):
        source = "novels.txt" if rest[0] == "hungarian.toml" else "papers.txt"
        start = f'init_from = "{"modernbert" if rest[0] == "modern.toml" else "english"}"'
        (recipe,) = (block for _, block in every("toml") if f'path = "{source}"' in block and start in block)
        piece = completed(tomllib.loads(recipe))
        texts_to_learn()
        Path("papers.txt").write_text(text_of(ENGLISH), encoding="utf-8")
        Path(rest[0]).write_text(tomli_w.dumps(piece), encoding="utf-8")
        until = ["--until", "corpus"] if verb == "run" else []
        yield [verb, *rest[:1], "corpus.filter.enabled=false", "corpus.workers=1", *until, *rest[1:]]
    elif verb == "init" and "--from" in rest:  # tests/pipeline/test_continued.py trains such recipes
        start = Path(rest[rest.index("--from") + 1])
        if start.parts[0] == "runs":
            provide(start, request)
        else:
            write_network(start, words_of(ENGLISH))
        texts_to_learn()
        yield arguments
    elif verb == "init" and "--source" in rest:
        texts_to_learn()
        yield arguments
    elif rest and rest[0] == "novels.toml":
        provide(Path("runs/hu"), request)
        texts_to_learn()
        line = next(line for _, line in commands() if "novels.toml" in line and "--from" in line)
        yield [*shlex.split(line)[1:]]
        yield arguments
    elif rest and rest[0] == "distil.toml":
        (recipe,) = (block for _, block in every("toml") if "distillation" in block)
        Path("distil.toml").write_text(tomli_w.dumps(completed(tomllib.loads(recipe))), encoding="utf-8")
        yield [verb, *rest[:1], *CHEAP, "--until", "corpus", *rest[1:]]
    elif rest and rest[0] == "wiki.toml":
        yield [verb, *without_corpus(rest, request.getfixturevalue("finished"))]
    elif rest and rest[0] == "hu.toml":
        yield drafted("hu.toml")
        if verb == "run":
            yield ["check", "hu.toml", *CHEAP]  # tests/pipeline/test_hungarian_guide.py runs it
        else:
            yield [*arguments, "corpus.source=sample-small"]
    elif verb == "inspect" and "--vocab" in rest:  # of what the line before it in the document makes
        provide(Path(rest[rest.index("--vocab") + 1]), request)
        yield ["convert", "runs/hu", rest[0], "--to", rest[0].rpartition("-")[2]]
        yield arguments
    elif verb == "inspect":
        for before, word in zip(["", *rest], rest, strict=False):
            if before in ("", "--diff"):
                provide(Path(word), request)
        yield ["1" if before == "--batch" else word for before, word in zip(["", *arguments], arguments, strict=False)]
    elif verb == "plan":
        if "--place" in rest:
            (hardware,) = (block for _, block in every("toml") if "[hardware]" in block)
            Path(rest[rest.index("--place") + 1]).write_text(hardware, encoding="utf-8")
        # The cache is the user's, and neither `mini` nor 20 seconds are needed to see that measuring works.
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("XDG_CACHE_HOME", str(workplace / "cache"))
        monkeypatch.setattr("bertwright.estimate.measure.measure", partial(measure, seconds=1.0))
        yield [*arguments, *(["model.size=tiny", "train.phases.0.batch=4"] if "--measure" in rest else [])]
    elif verb == "publish":  # sent to services on this machine: tests/pipeline/test_publish.py
        provide(Path(rest[0]), request)
        yield [*arguments, *(["--dry-run"] if "--dry-run" not in rest else [])]
    elif verb == "convert":
        provide(Path(rest[0]), request)
        if rest[-1].startswith("gguf") and sources() is None:
            pytest.skip("llama.cpp's converter is not here: make setup")
        yield arguments
    elif verb == "import":  # tests/unit/export/test_imported.py and tests/pipeline/test_import.py read what it writes
        foreign_network(Path(rest[0]))
        for word in rest:
            if word.startswith("runs/"):
                provide(Path(word), request)
        Path("hu.txt").write_text("Az út a hegyre vezet.\nRégi ház áll ott, word7.\n", encoding="utf-8")
        yield arguments
    elif verb == "certify":  # in one runtime; tests/unit/export tests each
        request.getfixturevalue("warm_runtimes")
        provide(Path(rest[0]), request)
        Path("lines.txt").write_text("Az út a hegyre vezet.\nRégi ház áll ott.\n", encoding="utf-8")
        # Between the nearly equal guesses of a network that learnt for seconds, rounding to int8 decides.
        given = [word.replace(",onnx-int8", "") for word in arguments]
        yield [*given, *(["--runtimes", "onnx"] if "--runtimes" not in rest else [])]
    elif verb == "translate":
        if "--script" in rest:
            written = Path(rest[rest.index("--script") + 1])
            (steps,) = (block for _, block in every("text") if "PRETRAINED_MODEL" in block)
            job = Path(__file__).parents[1] / "golden" / "translate" / "azure-large-job.yml"
            written.write_text(job.read_text(encoding="utf-8") if written.suffix == ".yml" else steps, encoding="utf-8")
        yield arguments
    elif verb == "bench" and rest[0] == "autotune":
        # Trials take minutes; tests/pipeline/test_autotune.py runs them. Here they are recorded as done.
        tried = Tried(Recipe.load(rest[1]), 0, 1, int(rest[3]), 600)
        with open_table(Path("runs", rest[1]), tried, machine_here(tried)) as table:
            for again in (False, True):
                table.keep(Trial(Candidate("auto", again, 16), "trained", 2, 1.0 + again, 1))
        yield [verb, *rest, "--micro-batch", "16"]
    elif verb == "bench":  # measured in tests/unit/bench/test_bench_verb.py
        request.getfixturevalue("monkeypatch").setattr(bench_run, "bench", lambda *given: [OURS, PEER])
        yield arguments
    elif "--download" in rest:
        yield [verb, *rest, "--mirror", request.getfixturevalue("mirror")]
    elif "--rehearse" in rest:  # the part without torch; the rest: tests/pipeline/test_rehearse.py
        yield ["check", *rest[:1]]
    elif verb == "demo":  # tests/pipeline/test_demo.py
        assert not rest
        yield ["run", verb, *CHEAP, "--until", "corpus"]
    elif verb == "run":
        until = [] if "--until" in rest else ["--until", "corpus"]
        out = [] if "--out" in rest else ["--out", str(workplace / "out")]
        yield ["run", *rest, *CHEAP, *until, *out]
    elif verb in ("serve", "watch"):  # until what answers until it is stopped: tests/unit/serve, tests/unit/watch
        for word in rest:
            if word.startswith("runs/"):
                provide(Path(word), request)
        if "--token-file" in rest:
            Path(rest[rest.index("--token-file") + 1]).write_text("a-token-of-the-reader", encoding="utf-8")

        def end(listening: Listening, make_app: Callable[[], object]) -> None:
            make_app()

        request.getfixturevalue("monkeypatch").setattr(Listening, "serve", end)
        yield arguments
    elif verb == "corpus" and rest[0].startswith("runs/"):
        provide(Path(rest[0]), request)
        yield arguments
    elif verb in DATA_STAGES:
        rest = [word.replace("/shared/", f"{workplace}/") for word in rest]
        out = ["--out", rest[rest.index("--out") + 1]] if "--out" in rest else []
        if verb != "corpus":
            yield ["run", rest[0], *CHEAP, *out, "--until", DATA_STAGES[DATA_STAGES.index(verb) - 1]]
        scheduler = request.getfixturevalue("scheduler") if "--dask" in rest else ""
        yield [verb, *(scheduler if word.startswith("tcp://") else word for word in rest), *CHEAP]
    elif verb == "evaluate" and "--suite" in rest:
        for word in rest:
            if word.startswith("runs/") and not Path(word).exists():
                provide(Path(word), request)
            elif word.startswith("models/"):
                shutil.copytree(request.getfixturevalue("finished") / "export" / "hf", word)
        (suite,) = (block for _, block in every("toml") if "[[exam]]" in block)
        Path("exams.toml").write_text(suite, encoding="utf-8")
        if "hulu" in rest:  # of one task one seed, instead of three of five: tests/pipeline/test_suites.py
            data_of("hucola", make_folder(Path("hulu")) / "HuCOLA")
            yield ["1" if word == "3" else word for word in arguments]
            return
        Path("ud").mkdir(exist_ok=True)
        for name in ("dev", "test"):
            Path("ud", f"{name}.conllu").write_text("az DET\nút NOUN\n\negy DET\nház NOUN\n", encoding="utf-8")
        Path("blimp.tsv").write_text("sentence_good\tsentence_bad\nEz az út.\tEz az utak.\n", encoding="utf-8")
        Path("cola.tsv").write_text("x\t1\t\tEz az út.\nx\t0\t*\tEz az utak.\n", encoding="utf-8")
        Path("texts.txt").write_text("Ez az út.\nAz egy régi ház.\n", encoding="utf-8")
        scored_sentences(Path("dev.tsv"))
        # Sixty sentences and items instead of hundreds; tests/pipeline/test_exams.py reads the scores.
        request.getfixturevalue("few_items")()
        yield arguments
    elif verb == "embed":  # tests/pipeline/test_embed.py trains
        provide(Path(rest[0]), request)
        scored_sentences(Path("dev.tsv"))
        data_of("embed", Path("pairs"))
        smaller = {"dump.xml.bz2": "sample-small", "128,64": "8,4"}
        given = [smaller.get(word, word) for word in arguments]
        yield [*given, *(["--print"] if "--print" not in rest else []), "--out", "out"]
    elif verb == "finetune":  # tests/pipeline/test_finetune.py trains
        provide(Path(rest[rest.index("--model") + 1]), request)
        folder = Path(rest[rest.index("--data") + 1] if "--data" in rest else "glue/sst2")
        data_of(rest[0], make_folder(folder.parent) / folder.name)
        yield [*arguments, *(["--print"] if "--print" not in rest else [])]
    elif verb == "predict":
        file = Path(rest[1])
        heads: dict[str, Head] = {"news.conll": "token", "questions.jsonl": "span", "choices.jsonl": "choice"}
        head = heads.get(file.name, "sequence")
        network = BertModelConfig(size="tiny").resolve(len(SPECIALS) + 2, False, ANSWERS.get(head, ("no", "yes")), head)
        write_stock(Path(rest[0]), Classifier(network))
        entries = [*SPECIALS, "word0", "word1"]
        build_tokenizer(entries, lower_case=True, strip_accents=True).save(str(Path(rest[0], "tokenizer.json")))
        record = {"text": "word0 word1", "question": "word0", "context": "word1 word0", "choices": ["word0", "word1"]}
        contents = {".csv": "text\nword0 word1\n", ".jsonl": f"{json.dumps(record)}\n", ".json": json.dumps([record])}
        make_folder(file.parent)
        file.write_text(contents.get(file.suffix, "word0 word1\n"), encoding="utf-8")
        yield arguments
    elif verb == "report" and rest[0].startswith("runs/"):
        for word in rest[: rest.index("--out") if "--out" in rest else None]:
            provide(Path(word), request)
        yield arguments
    elif verb == "export" and "--page" in rest:  # of a run that is exported already
        pytest.importorskip("onnx", reason="pip install 'bertwright[onnx]'")
        provide(Path(rest[0]), request)
        yield arguments
    elif verb in STAGES:
        if any("observers=" in word for word in rest):
            pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: bertwright[tensorboard]")
        if "--profile" in rest:
            at = rest.index("--profile")
            rest[at : at + 2] = [f"train.profile={rest[at + 1]}"]
        rest = [
            word for word in rest if word not in ("--per-socket", "--per-node", "train.graph=ortmodule")
        ]  # tests/pipeline/test_per_socket.py, tests/ort
        out_at = rest.index("--out") if "--out" in rest else len(rest)
        yield ["check", *with_sources([*rest[:out_at], *rest[out_at + 2 :]])]
    elif verb == "launch" and rest[-1] in ("--status", "--logs", "--stop"):
        # Needs a submission: tests/slurm uses a real Slurm, tests/azureml a stand-in for Azure.
        assert rest[0] in LAUNCHED and len(rest) == 3
        yield ["check", *with_sources(rest[1:2])]
    elif verb == "launch" and rest[0] == "upload":
        provide(Path(rest[1]), request)
        # Real storage: tests/unit/transfer/test_upload.py.
        yield [verb, *(f"file://{workplace}/{word.partition('://')[2]}" if "://" in word else word for word in rest)]
    elif verb == "launch":
        for name, folder in (("mine.toml", "docs/how-to"), ("slurm.toml", "docs/hu")):
            if name in rest:
                here = (block for document, block in every("toml") if document.startswith(folder))
                (place,) = (block for block in here if tomllib.loads(block).get("kind") == rest[0])
                Path(name).write_text(place, encoding="utf-8")
        if "hu.toml" in rest:
            yield drafted("hu.toml")
        yield [verb, *(word for word in rest if word != "--submit")]
    elif verb == "check" and rest and not rest[0].startswith("--"):
        yield [verb, *with_sources(rest)]
    else:
        yield arguments


def foreign_network(path: Path) -> None:
    """A network as another program saves it: Google's in a TensorFlow checkpoint, NVIDIA's in a .pt with configuration
    and vocabulary beside it, else a folder of transformers."""
    letters = "aábcdeéfghiíjklmnoóöőprstuúüűvyz"
    entries = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *(f"word{i}" for i in range(500))]
    network = PreTrainingModel(BertModelConfig(size="tiny").resolve(len(entries)))
    folder = write_stock(path.with_suffix(""), network, entries)
    if not path.suffix and "uncased" not in path.name:
        (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
        return
    tensors = load_file(folder / "model.safetensors")
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = {key: value for key, value in stated.items() if key not in ("architectures", "model_type")}
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    place = path.parent if path.suffix else folder
    (place / "bert_config.json").write_text(json.dumps(config), encoding="utf-8")
    if not path.suffix:
        write_google(folder, config, tensors)
        return
    (folder / "vocab.txt").rename(place / "vocab.txt")
    activated = re.compile(r"(intermediate|pooler|transform)\.dense\.")
    model = {activated.sub(r"\1.dense_act.", name): tensor for name, tensor in tensors.items()}
    torch.save({"model": model, "optimizer": {"state": {0: {"step": 1}}, "param_groups": []}}, path)


def without_corpus(words: list[str], finished: Path) -> list[str]:
    """The arguments of a command on the guide's recipe without a corpus, with its data in place, scaled down."""
    (recipe,) = (block for _, block in every("toml") if "[texts]" in block)
    Path(words[0]).write_text(recipe, encoding="utf-8")
    convert(finished, Path("made"), Target("hdf5"))
    Path("wiki").mkdir()
    next(path for path in Path("made").iterdir() if "seq_len_16" in path.name).rename("wiki/hdf5")
    shutil.copy(finished / "vocab" / "vocab.txt", "wiki")
    few = ("length=16", "batch=8", "steps=4")
    case = ("vocab.lower_case=false", "vocab.strip_accents=false", "examples.workers=1")
    return [*words, *case, *(f"train.phases.0.{word}" for word in few)]


def with_sources(words: list[str]) -> list[str]:
    """The arguments of a check with the named sources in place, or with the sample if it names none; both are
    Hungarian."""
    named = [found[1] for word in words if (found := re.match(r'corpus\.source=(?:{path = ")?([^"]+)', word))]
    for path in (Path(name.replace("*", "x")) for name in named if "://" not in name):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE, path)
    return [*words, "corpus.language=hu", *([] if named else ["corpus.source=sample"])]


def provide(path: Path, request: pytest.FixtureRequest) -> None:
    """Put a file or folder of the right kind at a path that the documents mention."""
    if path.name == "hu-mini":  # a copy of what a run exported
        shutil.copytree(request.getfixturevalue("finished") / "export" / "hf", path)
        return
    if path.parts[0] != "runs" and not path.suffix:
        shutil.copytree(request.getfixturevalue("finished") / "export" / "hf", path)
        return
    if path.parts[0] != "runs":
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE, path)
        return
    folder = Path(*path.parts[:2])
    shutil.copytree(request.getfixturevalue("finished"), folder)
    if "checkpoints" in path.parts:
        newest = max((folder / "train" / "checkpoints").iterdir())
        newest.rename(path)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a local server that has three dumps and, by their names, vocabularies."""
    dump, vocabulary = SAMPLE.read_bytes(), b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
    with serving() as server:
        for wiki in ("huwiki", "hywiki", "nlwiktionary"):
            name = f"{wiki}-20260401-pages-articles-multistream.xml.bz2"
            server.files[f"{wiki}/20260401/{name}"] = dump
            for date in ("20260401", "latest"):
                sums = f"{hashlib.sha1(dump).hexdigest()}  {name}\n"
                server.files[f"{wiki}/{date}/{wiki}-{date}-sha1sums.txt"] = sums.encode()
        for known, published in vocabularies.PUBLISHED.items():
            server.files[f"{published.repository}/resolve/main/vocab.txt"] = vocabulary
            ours = replace(published, sha256=hashlib.sha256(vocabulary).hexdigest())
            monkeypatch.setitem(vocabularies.PUBLISHED, known, ours)
        yield server.address


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask scheduler with one worker."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'bertwright[dask]'")
    with cluster(1) as address:
        yield address


def test_there_are_commands() -> None:
    assert len(list(commands())) > 20


@each_row(("document", "block"), every("toml"))
def test_every_piece_of_a_recipe_is_valid(
    document: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece, workplace = tomllib.loads(block), work_in(tmp_path, monkeypatch)
    if "hardware" in piece:
        (workplace / "place.toml").write_text(block, encoding="utf-8")
        assert read_place(workplace / "place.toml").machine.ranks == 16
        return
    if "any" in piece:
        (workplace / "mine.toml").write_text(block, encoding="utf-8")
        templates = templates_of("hu", read_table(workplace / "mine.toml"))
        assert templates.text("ship|HMS|Victory") == "HMS Victory" and templates.text("nagyszám|7") == "7"
        return
    if "rule" in piece or "exam" in piece:  # Taplo's rule and a suite, tested where their guides use them
        return
    if piece.get("kind") in LAUNCHED:
        (workplace / "mine.toml").write_text(block, encoding="utf-8")
        load_place(piece["kind"], "mine.toml")
        return
    whole = completed(piece)
    if "texts" in piece:
        whole = piece  # a complete recipe without a corpus
        for phase in piece["train"]["phases"]:
            Path(phase["data"]).mkdir(parents=True)
    (workplace / "recipe.toml").write_text(tomli_w.dumps(whole), encoding="utf-8")
    Recipe.load(workplace / "recipe.toml")


def completed(piece: dict[str, Any]) -> dict[str, Any]:
    """The recipe `smoke` with the sections of the excerpt; the vocabulary and the teacher it names are put in place."""
    if "config" in piece.get("model", {}):
        return {**tomllib.loads((RECIPES / "smoke.toml").read_text(encoding="utf-8")), **published(piece)}
    vocabulary = Path(piece.get("vocab", {}).get("file", "unused"))
    vocabulary.parent.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("".join(f"{entry}\n" for entry in SPECIALS))
    if "teacher" in (objective := piece.get("train", {}).get("objective", {})):
        network = PreTrainingModel(BertModelConfig(size=piece["model"]["size"]).resolve(len(SPECIALS), False))
        write_stock(Path(objective["teacher"]), network)
    whole = {**tomllib.loads((RECIPES / "smoke.toml").read_text(encoding="utf-8")), **piece}
    if objective.get("kind") not in ("classification", "tagging", "span", "choice", "embedding"):
        return whole
    if "phases" not in piece["train"]:  # the guide shows the task alone
        phase = {"length": 64, "batch": 32, "learning_rate": 2e-5, "epochs": 3, "data": "data"}
        whole["train"] = {**piece["train"], "phases": [phase]}
    if "init_from" in piece["train"]:
        network = PreTrainingModel(BertModelConfig(size=piece["model"]["size"]).resolve(len(SPECIALS), False))
        write_stock(Path(piece["train"]["init_from"]), network)
    unread = ("examples", "evaluate", *(("corpus",) if "vocab" in piece else ()))
    return {name: section for name, section in whole.items() if name not in unread}


def published(piece: dict[str, Any]) -> dict[str, Any]:
    """The recipe, with the published network that it names in place, as transformers 5 saves it."""
    folder = Path(piece["train"]["init_from"])
    model = ModernModelConfig(size="tiny") if piece["model"].get("kind") == "modern" else BertModelConfig(size="tiny")
    write_stock(folder, PreTrainingModel(model.resolve(len(SPECIALS), False)))
    (folder / "vocab.txt").unlink()
    text = {name: piece["vocab"][name] for name in ("lower_case", "strip_accents")}
    build_tokenizer(list(SPECIALS), **text).save(str(folder / "tokenizer.json"))
    return piece


def test_the_splitter_of_the_guide_splits(workplace: Path) -> None:
    (code,) = blocks(ROOT / "docs" / "how-to" / "clean-text.md", "python")
    (workplace / "split.py").write_text(code, encoding="utf-8")
    found = split_paragraphs(SplitConfig(command=(sys.executable, "split.py")), ["Ez egy. Ez kettő!", "Tőr? Kő."])
    assert found == [["Ez egy.", "Ez kettő!"], ["Tőr?", "Kő."]]


def read(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_every_recipe_and_verb_is_described() -> None:
    named = re.findall(r"^\| \[`([a-z0-9-]+)`\]\(\.\./recipes/\1\.toml\) \|", read("recipes"), re.MULTILINE)
    assert named == [*dict.fromkeys(named)] and set(named) == set(shipped())
    for verb in app._VERBS:
        assert re.search(rf"`{verb}[ `]", read("commands")), verb
    for verb in ("run", "check", "plan", "inspect", "recipes", "places", "launch", *STAGES):
        assert re.search(rf"`{verb}[ `]", read("index")), verb


def test_the_start_page_shows_what_the_demo_says() -> None:
    shown, recipe = " ".join(read("index").split()), Recipe.load("demo")
    for chapter in CHAPTERS.values():
        assert f"{chapter.title}: {chapter.about(recipe)}" in shown


def test_readme_is_short_and_begins_with_a_picture_and_two_commands() -> None:
    readme = ROOT / "README.md"
    lines = readme.read_text(encoding="utf-8").splitlines()
    (picture,) = (line for line in lines if line.startswith("!["))
    assert len(lines) < 70 and lines.index(picture) < 15
    assert len(blocks(readme, "sh")[0].splitlines()) == 2
    pictures = [*re.findall(r"^!\[.+\]\((.+)\)$", read("index"), re.MULTILINE), picture.partition("](docs/")[2][:-1]]
    assert len(pictures) == 4 and all((ROOT / "docs" / name).stat().st_size < 200_000 for name in pictures)


def test_the_model_of_the_tutorial_is_used_as_it_says(finished: Path, workplace: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    (code,) = (block for block in blocks(ROOT / "docs" / "tutorial.md", "python") if "transformers" in block)
    (workplace / "runs").mkdir()
    (workplace / "runs" / "demo").symlink_to(finished)
    done = subprocess.run([sys.executable, "-c", code], cwd=workplace, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("token_str") == 5, done.stderr


def test_the_code_of_the_api_page_and_the_plugin_guide_runs(
    finished: Path, workplace: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "runs").mkdir()
    (workplace / "runs" / "demo").symlink_to(finished)
    (code,) = blocks(ROOT / "docs" / "api.md", "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=workplace, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("(2, "), done.stderr
    guide = ROOT / "docs" / "how-to" / "plugins.md"
    (code,) = blocks(guide, "python")
    (workplace / "mine.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(workplace))
    (command,) = (block for block in blocks(guide, "text") if "bertwright run" in block)
    _, program, verb, *rest = shlex.split(command)
    assert (program, verb) == ("bertwright", "run")
    recipe = Recipe.load(rest[0], rest[1:])
    optimizer = build_optimizer(recipe.optim, torch.nn.Linear(2, 2), {})
    assert type(optimizer).__name__ == "RAdam" and moment_names(recipe.optim, torch.nn.Linear(2, 2))


def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text(encoding="utf-8")):
            found = document.parent / target if target else document
            assert found.exists(), f"{document.name}: {target}"
            assert not anchor or anchor in anchors(found), f"{document.name}: {target}#{anchor}"


def anchors(document: Path) -> set[str]:
    """Those that a host of repositories gives to the headings of a document, and those that it has itself."""
    text = document.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', text))


@each_row("guide", sorted((ROOT / "docs" / "how-to").glob("add-a*.md")))
def test_the_files_that_a_guide_names_are_there(guide: Path) -> None:
    paths = re.findall(r"(?:`|^--- )((?:src|tests)/[^` \n]+)(?:`|$)", guide.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(paths) > 1 and not [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.parametrize(("name", "format"), [("add-a-format", Format), ("add-a-source", SourceFormat)])
def test_the_guide_to_a_format_names_what_a_format_may_say(name: str, format: type[Any]) -> None:
    guide = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in guide.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(table)) == [field.name for field in fields(format)]


def test_the_run_folder_is_as_it_is_drawn(finished: Path) -> None:
    drawn = set(re.findall(r"^[├└]── ([\w.]+)", read("run-folder"), re.M))
    # What is made later, by a command or option of its own.
    assert drawn - {"exams", "page.html"} == {path.name for path in finished.iterdir() if not path.name.startswith(".")}
