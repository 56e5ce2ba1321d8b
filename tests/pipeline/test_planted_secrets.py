"""A secret in a wrong or a right place is shown nowhere: not in what is printed, not in a file that is written.

The planted word has no form by which it could be known; only the name before it, or the address around it, tells.
"""

from pathlib import Path

import pytest
import zstandard
from tests.pipeline.conftest import Call
from tests.rows import each_row

from bertwright import Recipe, run

WORD = "plAnted"
LOGIN = f"https://me:{WORD}@host/x"
SIGNED = f"https://host/x?X-Amz-Signature={WORD}"
FILES = {
    "number.toml": f'[train]\nseed = {{password = "{WORD}"}}',
    "address.toml": f'[train]\nseed = "{LOGIN}"',
    "words.toml": f'[train]\nseed = ["--token", "{WORD}"]',
    "nested.toml": f'[train]\nphases = {{db = {{secret = ["{WORD}", "{WORD}"]}}}}',
    "choice.toml": f'[model]\nsize = {{api_key = "{WORD}"}}',
    "unquoted.toml": f"password = {WORD}",
    "place.toml": f'kind = "slurm"\npasword = "{WORD}"',
    "job.sh": f"export DB_PASSWORD={WORD}\npython run_mlm.py --token {WORD} --learning_rate {LOGIN}",
}
COMMANDS = [
    ("check", "smoke", f"train.seed.password={WORD}"),
    ("check", "smoke", f"train.phases.9.token={WORD}"),
    ("check", "smoke", f"train.phases.9.x=token={WORD}"),
    ("check", "smoke", f"train.phases.9.passphrase=two {WORD}s"),
    ("check", "smoke", f"train.pasword.of.mine={WORD}"),
    ("check", "smoke", f"train.observers.0.url={LOGIN}"),
    ("check", "smoke", f"train.init_from={LOGIN}"),
    ("check", "smoke", f"train.mirror={SIGNED}"),
    ("check", "smoke", f"train.seed=AccountName=a;AccountKey={WORD};EndpointSuffix=b"),
    ("check", "smoke", f"corpus.source.0.path=https://host/x?token={WORD}"),
    ("check", "smoke", f"hubToken:{WORD}"),
    ("check", "smoke", LOGIN),
    ("check", "smoke", "--token", WORD),
    ("check", "smoke", "--place", LOGIN),
    ("check", "smoke", "--out", LOGIN),
    ("check", "smoke", "--explain", f"train.password={WORD}"),
    ("check", SIGNED),
    *(("check", f"{{folder}}/{name}") for name in FILES if name.endswith("l.toml") or name < "place.toml"),
    ("plan", LOGIN),
    ("bench", "smoke", f"train.seed.api_key={WORD}"),
    ("run", "smoke", "--out", LOGIN),
    ("run", "smoke", "--until", f"token={WORD}"),
    ("run", "smoke", "--until", "corpus", f"report.title=of {LOGIN}", "--out", "{folder}/run"),
    ("inspect", LOGIN),
    ("inspect", "{folder}", f"password={WORD}"),
    ("convert", LOGIN, "{folder}/converted"),
    ("init", LOGIN),
    ("recipes", f"token={WORD}"),
    ("places", SIGNED),
    ("launch", LOGIN, "smoke"),
    ("launch", "slurm", "smoke", "--set", f"slurm.password={WORD}"),
    ("launch", "slurm", "smoke", "--set", f"environment.HF_TOKEN={WORD}"),
    ("launch", "slurm", "smoke", "--set", f"partition={LOGIN}"),
    ("launch", "slurm", "smoke", f"train.seed.password={WORD}"),
    ("launch", "slurm", "smoke", "--place", "{folder}/place.toml"),
    ("launch", "upload", LOGIN, SIGNED),
    ("translate", "{folder}/job.sh"),
    ("translate", "--", "run_mlm.py", "--hub_token", WORD, "--learning_rate", LOGIN),
    ("translate", "--", f"API_KEY={WORD}", "python", LOGIN),
    (f"password={WORD}",),
    (LOGIN,),
]


@each_row("command", COMMANDS)
@each_row("as_json", [False, True])
def test_a_planted_secret_is_shown_nowhere(command: tuple[str, ...], as_json: bool, call: Call, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = [word.format(folder=tmp_path) for word in command]
    if as_json:
        words.insert(1, "--json")
    done = call(*words)
    # A box of the terminal breaks lines inside words.
    printed = "".join(letter for letter in done.out + done.err if letter.isalnum())
    assert printed and WORD not in printed, done
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in FILES]
    assert not [path for path in written if WORD.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def titled(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose texts for people hold a secret each."""
    source = f'{{path = "sample-small", name = "token={WORD}", licence = "CC0, see {LOGIN}"}}'
    steps = ("train.phases.0.steps=1", "train.phases.1.steps=1")
    words = [f"corpus.source={source}", f"report.title=of {LOGIN}, password={WORD}", *steps]
    return run(Recipe.load(small_recipe, words), tmp_path_factory.mktemp("titled") / "run").path


def test_a_secret_in_a_text_for_people_is_in_no_file_of_a_finished_run(titled: Path) -> None:
    """Neither on the page and the model card, nor in what the stages record; of shards, as they are compressed."""
    files = [path for path in titled.rglob("*") if path.is_file()]
    whole = zstandard.ZstdDecompressor().decompressobj
    texts = {
        path: whole().decompress(path.read_bytes()) if path.suffix == ".zst" else path.read_bytes() for path in files
    }
    assert not [path for path, text in texts.items() if WORD.encode() in text]
    assert "of https://host/x, password=hidden" in (titled / "report.html").read_text(encoding="utf-8")
    assert "CC0, see https://host/x" in (titled / "export" / "hf" / "README.md").read_text(encoding="utf-8")


def test_an_error_still_says_which_key_holds_it(call: Call) -> None:
    done = call("check", "smoke", f"train.seed.password={WORD}")
    assert done.code == 2
    assert done.err.startswith("bertwright: command line: train.seed: must be a whole number; got {'password': hidden}")
