"""No refusal of a run's first seconds is unknown to `check`: both make the same checks.

Each row is a recipe that `run` refuses before, or just after, its first stage begins. `check` must refuse it with the
same code and the same reason, and neither may leave anything behind.
"""

import json
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import save_file
from tests.pipeline.conftest import Call
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.test_classification import recipe as classifier
from torch import zeros

from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel

WITHOUT_VOCABULARY = ("vocab.size=", "vocab.file={folder}/vocab.txt")
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def dump(folder: Path, language: str) -> None:
    """A dump whose header and articles are in Hungarian, or whose articles have another language than its header."""
    text = "A régi malom a folyó mellett áll, és a molnár minden reggel lisztet visz a pékhez. " * 12
    pages = "".join(
        f"<page><title>T{n}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id><text>{text}</text></revision></page>"
        for n in range(1, 5)
    )
    site = f"<siteinfo><dbname>{language}wiki</dbname><namespaces><namespace key='0'/></namespaces></siteinfo>"
    head = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="{language}">'
    (folder / "dump.xml").write_text(f"{head}{site}{pages}</mediawiki>", encoding="utf-8")


def stock(folder: Path, **config: object) -> None:
    (folder / "net").mkdir()
    values = {"model_type": "bert", "vocab_size": 6, "hidden_size": 16, "num_hidden_layers": 1, **config}
    values |= {"num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 32}
    (folder / "net" / "config.json").write_text(json.dumps(values))
    (folder / "net" / "vocab.txt").write_text("\n".join((*SPECIALS, "a")) + "\n")
    save_file({"bert.embeddings.word_embeddings.weight": zeros(6, 16)}, folder / "net" / "model.safetensors")


def complete(folder: Path) -> None:
    network = BertConfig(vocab_size=6, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                         intermediate_size=32, max_position_embeddings=32)  # fmt: skip
    write_stock(folder / "net", PreTrainingModel(network), (*SPECIALS, "a"))


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8") and None


ROWS: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "another language": (
        lambda folder: dump(folder, "hu"),
        ("corpus.source={folder}/dump.xml", "corpus.language=de", "corpus.filter.languages=[]"),
        "says that its language is 'hu', but corpus.language is 'de'",
    ),
    "the sample's language": (
        lambda folder: None,
        ("corpus.language=de", "corpus.filter.languages=[]"),
        "but corpus.language is 'de'",
    ),
    "no source": (lambda folder: None, ("corpus.source={folder}/gone.txt",), "gone.txt"),
    "an empty source": (write("t.txt", ""), ("corpus.source={folder}/t.txt",), "t.txt"),
    "templates without a wiki": (
        write("t.txt", "A sentence.\n"),
        ("corpus.source={folder}/t.txt", "corpus.keep_disambiguation=true"),
        "applies only to dumps of wikis",
    ),
    "damaged templates": (
        write("t.toml", "templates = 3"),
        ("corpus.wikitext.templates={folder}/t.toml",),
        "t.toml",
    ),
    "no vocabulary": (lambda folder: None, WITHOUT_VOCABULARY, "vocab.txt"),
    "a broken vocabulary": (write("vocab.txt", "a\nb\n"), WITHOUT_VOCABULARY, "lacks [PAD]"),
    "a vocabulary with other case": (
        write("vocab.txt", "\n".join((*SPECIALS, *(f"Ab{n}" for n in range(90)))) + "\n"),
        (*WITHOUT_VOCABULARY, "vocab.lower_case=true"),
        "could never occur",
    ),
    "a network with another vocabulary": (complete, ("train.init_from={folder}/net",), "would train another"),
    "a network of another size": (
        lambda folder: stock(folder, num_hidden_layers=3),
        ("vocab.size=", "vocab.file={folder}/net/vocab.txt", "train.init_from={folder}/net"),
        "num_hidden_layers is 3 in",
    ),
    "a network without its tensors": (
        stock,
        ("vocab.size=", "vocab.file={folder}/net/vocab.txt", "train.init_from={folder}/net",
         "model.config={folder}/net/config.json"),
        "is another network: bert.embeddings.position.weight is absent there",
    ),
    "a teacher with another vocabulary": (
        stock,
        ("train.objective={{kind='distillation', teacher='{folder}/net', hidden_weight=0}}",),
        "was saved without the head",
    ),
    "no data": (lambda folder: None, ("train.phases.0.data={folder}/gone",), "does not exist"),
    "foreign data": (write("x.bin", "x"), ("train.phases.0.data={folder}",), "holds no training data"),
    "a foreign folder": (write("run", "x"), (), "is a file"),
}  # fmt: skip


@each_row("name", ROWS)
def test_what_run_refuses_check_refuses(name: str, small_recipe: Path, tmp_path: Path, call: Call) -> None:
    make, words, says = ROWS[name]
    make(tmp_path)
    given = [word.format(folder=tmp_path) for word in words]
    same_refusal(call, small_recipe, given, tmp_path / "run", says)


def same_refusal(call: Call, recipe: Path, given: list[str], out: Path, says: str) -> None:
    before = sorted(out.rglob("*"))
    checked = call("check", recipe, *given, "--out", out)
    ran = call("run", recipe, *given, "--out", out)
    assert ran.code != 0 and says in ran.err, ran.err
    assert checked.code == ran.code and says in checked.out + checked.err, checked.out + checked.err
    assert sorted(out.rglob("*")) == before, "neither leaves anything behind"


@each_row(
    ("rows", "says"),
    [
        ([{"words": "the old mill", "label": 0}], "needed are 'text', 'label'"),
        ([{"text": "the old mill", "label": "middling"}], "has the label 'middling', which is not one of the classes"),
        ([{"text": 3, "label": 0}], "has '3' where a text is expected"),
        ([{"text": "the old mill", "label": None}], "has no labelled text to train on"),
    ],
)
def test_labelled_texts_are_read_by_check(rows: list[dict[str, object]], says: str, tmp_path: Path, call: Call) -> None:
    classifier(tmp_path, 'labels = ["poor", "fine"]', rows)
    same_refusal(call, tmp_path / "recipe.toml", [], tmp_path / "run", says)


def test_results_of_other_settings_are_known_to_check(finished: Path, small_recipe: Path, call: Call) -> None:
    same_refusal(call, small_recipe, ["train.seed=7"], finished, "trained with other settings")
