"""Recipes drafted for fine-tuning: each is valid, passes the checks with small files in the official layout, and says
where its values come from."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.reference.teachers import SPECIALS, write_stock
from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.check_recipe import check_recipe
from bertwright.core.errors import DataError, RecipeError
from bertwright.examples.problems import Problems
from bertwright.finetune.draft import draft
from bertwright.finetune.grid import draft_at, points_of, read_grid
from bertwright.finetune.tasks import SMALL, TASKS, find_task, phase_of
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.vocab.split import build_tokenizer

PAIR = "index\tsentence1\tsentence2\tlabel\n0\tA man.\tA dog.\tnot_entailment\n1\tA dog.\tA dog.\tentailment\n"
MNLI = "index\tsentence1\tsentence2\tgold_label\n0\tA man.\tA dog.\tneutral\n1\tA dog.\tA dog.\tentailment\n"
NUMBERED = PAIR.replace("not_entailment", "0").replace("entailment", "1")
OFFICIAL = {
    "cola": "gj04\t1\t\tHe ran.\ngj04\t0\t*\tRan he he.\n",
    "sst2": "sentence\tlabel\na good film \t1\na bad one \t0\n",
    "mrpc": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tA dog.\tA dog.\n0\t8\t9\tA dog.\tA man.\n",
    "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tWhy?\t1\n2\t3\t4\tWhy?\tWho?\t0\n",
    "stsb": "index\tsentence1\tsentence2\tscore\n0\tA man.\tA dog.\t0.500\n1\tA dog.\tA dog.\t5.000\n",
    "mnli": MNLI,
    "mnli-mm": MNLI,
    "qnli": "index\tquestion\tsentence\tlabel\n0\tWho?\tA dog.\tentailment\n1\tWho?\tNo.\tnot_entailment\n",
    "rte": PAIR,
    "wnli": NUMBERED,
    "ner": "Ada B-PER\nran O\n\nin O\nBuda B-LOC\n",
    "pos": "1\tAda\tAda\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\t_\t_\t0\troot\t_\t_\n",
    "squad": {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": "Ada ran.",
                        "qas": [
                            {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]},
                            {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
                        ],
                    }
                ]
            }
        ]
    },
    "swag": ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    "0,a_1,1,A man runs. He,A man runs.,He,gold,stops.,sings.,sleeps.,flies.,0\n"
    "1,a_2,2,A dog runs. It,A dog runs.,It,gold,sings.,reads.,barks.,flies.,2\n",
    "copa": [
        {"premise": "A man ran.", "choice1": "He fell.", "choice2": "He sat.", "question": "effect", "label": n}
        for n in (0, 1)
    ],
    "choice": [{"article": "A dog.", "question": "Who?", "options": ["A man", "A dog", "No"], "answer": "B"}],
    "embed": [{"anchor": f"Who is {n}?", "positive": f"{n} is a dog.", "group": n} for n in "abcdefghijkl"],
    "classify": "review,sentiment,stars\nA good film.,up,5\nA bad film.,down,1\n",
    "hucola": [{"id": "0", "Sent": "Szép.", "label": "1"}, {"id": "1", "Sent": "Szépet.", "label": "0"}],
    "hurte": [{"id": n, "premise": "Szép.", "hypothesis": "Kék.", "label": n} for n in "01"],
    "huwnli": [{"id": n, "sentence1": "Szép.", "sentence2": "Kék.", "label": n} for n in "01"],
    "hucopa": [
        {"id": n, "question": "cause", "premise": "Kék.", "choice1": "Esik.", "choice2": "Süt a nap.", "label": n}
        for n in "12"
    ],
    "hucb": [{"premise": "Szép.", "hypothesis": "Kék.", "label": name} for name in ("neutral", "entailment")],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network as transformers saves it, with its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_stock(folder, PreTrainingModel(BertModelConfig(size="tiny").resolve(len(SPECIALS), False)))
    build_tokenizer(list(SPECIALS), lower_case=True, strip_accents=False).save(str(folder / "tokenizer.json"))
    return folder


def data_of(name: str, folder: Path) -> Path:
    """Small files of the task in its official layout."""
    folder.mkdir()
    content = OFFICIAL[name]
    suffix = {"ner": "conll", "pos": "conllu", "classify": "csv", "swag": "csv"}.get(name, "tsv")
    split = {"mnli": "dev_matched", "mnli-mm": "dev_mismatched"}.get(name, "dev")
    for part in ("train", split):
        if isinstance(content, str):
            (folder / f"{part}.{suffix}").write_text(content, encoding="utf-8")
        else:  # as HuCB's files, which begin with a byte order mark
            (folder / f"{name}_{part}.json").write_text(json.dumps(content), encoding="utf-8-sig")
    return folder


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_recipe_that_passes_the_checks(name: str, model: Path, tmp_path: Path) -> None:
    drafted = draft(name, model, data_of(name, tmp_path / "data"))
    (tmp_path / "recipe.toml").write_text(drafted.text, encoding="utf-8")
    recipe = Recipe.load(tmp_path / "recipe.toml")
    assert recipe == drafted.recipe(), "the text is the whole recipe"
    verdicts = check_recipe(recipe, tmp_path / "run", ("vocab", "examples", "train", "evaluate"))
    assert [each.sentence for each in verdicts if each.level == "error"] == []
    assert (recipe.vocab.lower_case, recipe.vocab.strip_accents) == (True, False), "as the tokenizer says"
    assert recipe.train.init_from == model and recipe.model.config == model / "config.json"


def test_defaults_name_their_source(model: Path, tmp_path: Path) -> None:
    text = draft("hucb", model, data_of("hucb", tmp_path / "data"), ["train.phases.0.epochs=2"]).text
    (phase,) = tomllib.loads(text)["train"]["phases"]
    assert (phase["batch"], phase["length"], phase["epochs"]) == (8, 256, 2)
    assert "epochs = 2 " in text and "# given on the command line" in text
    assert text.count("# HuLU-evaluate") == 3, "length, batch and warm-up"


def test_the_usual_grid_depends_on_the_size_of_the_model(model: Path, tmp_path: Path) -> None:
    drafted = draft("rte", model, data_of("rte", tmp_path / "data"))
    small, large = (read_grid(["usual"], replace(drafted, hidden_size=size), []) for size in (SMALL, SMALL + 256))
    rates = "train.phases.0.learning_rate"
    assert large[rates].value == ("2e-5", "3e-5", "5e-5") and large[rates].why == "Devlin et al. 2019 §A.3"
    assert small[rates].value == (*large[rates].value, "1e-4", "3e-4") and "miniatures" in small[rates].why
    assert [len(points_of(grid)) for grid in (small, large)] == [30, 18]
    lists = read_grid(["optim.betas=[0.9,0.99],[0.9,0.999]"], drafted, [])
    assert [draft_at(drafted, point).recipe().optim.betas for point in points_of(lists)] == [(0.9, 0.99), (0.9, 0.999)]


@each_row(
    ("name", "hidden", "wanted"),
    [
        ("sst2", 768, (2e-5, 3, 32, 128, 0.1)),
        ("mrpc", 768, (2e-5, 5, 32, 128, 0.1)),
        ("mrpc", SMALL, (1e-4, 5, 32, 128, 0.1)),
        ("sst2", SMALL, (1e-4, 4, 32, 128, 0.1)),
        ("hurte", 768, (2e-5, 6, 8, 256, 0.0)),
        ("hurte", 128, (1e-4, 6, 8, 256, 0.0)),
        ("swag", 768, (2e-5, 3, 16, 128, 0.1)),
        ("copa", 768, (1e-5, 10, 4, 256, 0.1)),
        ("hucopa", 768, (2e-5, 6, 8, 256, 0.0)),
        ("embed", 768, (2e-5, 1, 256, 128, 0.1)),
        ("embed", 128, (1e-4, 1, 256, 128, 0.1)),
    ],
)
def test_defaults_depend_on_task_and_size(name: str, hidden: int, wanted: tuple[float, ...]) -> None:
    keys = phase_of(find_task(name), hidden, 512)
    assert tuple(keys[key].value for key in ("learning_rate", "epochs", "batch", "length", "warmup")) == wanted


def test_few_pairs_are_compared_in_small_batches(model: Path, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        "".join(json.dumps({"q": f"Who is {n}?", "a": f"{n} is a dog."}) + "\n" for n in range(700))
    )
    columns = ["train.objective.anchor=q", "train.objective.positive=a"]
    drafted = draft("embed", model, tmp_path / "train.jsonl", columns)
    (phase,) = drafted.values["train"]["phases"]
    assert (phase["batch"], phase["micro_batch"]) == (32, 32) and "700 pairs are few" in drafted.text
    assert drafted.values["train"]["objective"]["anchor"] == "q"
    with pytest.raises(DataError, match="none of which is known to be that of the anchor"):
        draft("embed", model, tmp_path / "train.jsonl")


def test_files_of_questions_may_have_different_columns(model: Path, tmp_path: Path) -> None:
    """SWAG's train_full.csv and val.csv: each is read by its own."""
    data = data_of("swag", tmp_path / "data")
    full = "startphrase,gold-ending,distractor-0,distractor-1,sent1,sent2\nA. He,runs.,eats.,flies.,A.,He\n"
    (data / "train.csv").write_text(full)
    objective = draft("swag", model, data).values["train"]["objective"]
    assert objective == {"kind": "choice", "context": ["sent1"], "question": ["sent2"]}
    (data / "train.csv").write_text("text,choice1,choice2\nA.,b,c\n")
    with pytest.raises(DataError, match=r"train\.csv has no column that is known to be that of the label"):
        draft("swag", model, data)


def test_no_sequence_is_longer_than_the_model_takes() -> None:
    assert phase_of(find_task("sst2"), 128, 64)["length"].value == 64


@each_row(
    ("lines", "overrides", "wanted"),
    [
        ("text,label\nGood film.,up\nBad film.,down\n", (), {"labels": ["down", "up"], "text": "text"}),
        ("premise,hypothesis,score\nA b.,C d.,0.5\nA b.,C d.,3\n", (), {"labels": ["score"], "pair": "hypothesis"}),
        ("sentence,label\nA b.,10\nA b.,9\nA b.,1\n", (), {"labels": ["1", "9", "10"], "text": "sentence"}),
        ("text,label\n" + "A b.,0\nA b.,1\n" * 2 + "A b.,-1\n", (), {"labels": ["0", "1"]}),
        ("text,label\nA b.,0\nA b.,1\nA b.,-1\n", (), {"labels": ["-1", "0", "1"]}),
        ("text,label\nA b.\nA b.,0\nA b.,1\n", (), {"labels": ["0", "1"], "text": "text", "label": "label"}),
        ("text,label\nA b.,-1\nA b.,1\n", (), {"labels": ["-1", "1"]}),
        ("id,blurb,label\nx1,A b.,0\nx2,A b.,1\n", (), {"text": "blurb"}),
        ("id,text,kind\n" + "1,A b.,c\n2,D e.,f\n" * 5 + "3,G h.,c\n", (), {"label": "kind", "labels": ["c", "f"]}),
        ("a,b,label\nA b.,C.,0\nA b.,C.,1\n", ("train.objective.text=b",), {"text": "b"}),
    ],
)
def test_columns_and_classes_are_guessed(
    lines: str, overrides: tuple[str, ...], wanted: dict[str, object], model: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text(lines, encoding="utf-8")
    objective = draft("classify", model, tmp_path / "train.csv", overrides).values["train"]["objective"]
    assert wanted.items() <= objective.items()


def test_a_tenth_of_a_single_file_is_held_out(model: Path, tmp_path: Path) -> None:
    data = data_of("rte", tmp_path / "data")
    assert "examples" not in draft("rte", model, data).values
    for alone in (data / "train.tsv", data):
        (data / "dev.tsv").unlink(missing_ok=True)
        drafted = draft("rte", model, alone)
        assert drafted.recipe().examples.heldout == 0.1 and "a tenth of the training file" in drafted.text
        assert any(each.startswith("examples.heldout = 0.1: no file of dev texts") for each in drafted.found)
    assert draft("rte", model, data, ["examples.heldout=0.3"]).recipe().examples.heldout == 0.3


def test_a_column_without_a_name_is_shown(model: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(",text,label\n0,Good film.,up\n1,Bad film.,down\n", encoding="utf-8")
    assert (
        draft("classify", model, tmp_path).keys["train.objective.text"].why
        == "guessed from the columns '', text, label"
    )


def test_what_is_guessed_is_reported(model: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\nGood film.,up\nBad film.,down\nGood.,up\n", encoding="utf-8")
    found = list(draft("classify", model, tmp_path).found)
    assert 'train.objective.labels = ["down", "up"]: found in the files; the rarest, down, has 1' in found
    assert 'train.objective.text = "text": guessed from the columns text, label' in found


def _csv(text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "train.csv").write_text(text, encoding="utf-8")
        return folder

    return write


@each_row(
    ("name", "write", "message"),
    [
        ("sst3", _csv(""), "there is no task 'sst3'"),
        ("ner", lambda folder: None, "finetune ner has no data: give --data"),
        ("rte", lambda folder: folder, "has no file to train on"),
        ("rte", lambda folder: None, "--data: glue/rte names a task of GLUE, which is neither"),
        ("classify", _csv("text,number\nA b.,1\n"), "train.objective.label=NAME"),
        ("classify", _csv("x,label\nab,1\ncd,2\n"), "train.objective.text=NAME (of predict: --text NAME)"),
        ("classify", _csv("text,label\nA b.,1\nC d.,1\n"), "has the one value '1': too few to be classes"),
        ("classify", _csv("text,label\n"), "has no records"),
        ("hucola", lambda folder: data_of("hurte", folder / "data"), "hucola has 'Sent', 'label' or"),
        ("ner", lambda folder: data_of("pos", folder / "data"), "do not mark entities"),
        ("pos", lambda folder: data_of("ner", folder / "data"), "which mark entities"),
    ],
)
def test_wrong_data_is_explained(
    name: str,
    write: Callable[[Path], Path | None],
    message: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("GLUE_DIR", "HF_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    data = write(tmp_path)
    with pytest.raises((RecipeError, DataError)) as caught:
        draft(name, model, data)
    assert message in str(caught.value)


def test_a_model_without_its_vocabulary_is_refused(model: Path, tmp_path: Path) -> None:
    data, folder = data_of("rte", tmp_path / "data"), tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((model / name).read_bytes())
    with pytest.raises(RecipeError, match=r"has no vocab\.txt or tokenizer\.json"):
        draft("rte", folder, data)
    (folder / "vocab.txt").write_bytes((model / "vocab.txt").read_bytes())
    with pytest.raises(RecipeError, match=r"Give vocab\.lower_case=true or false"):
        draft("rte", folder, data)
    assert draft("rte", folder, data, ["vocab.lower_case=true", "vocab.strip_accents=true"]).recipe()


EMOTIONS = "".join(f"what a {word} day {n}\t{label}\ted{n}\n" for n, (word, label) in enumerate(
    [("good", "1"), ("bad", "0"), ("strange", "0,2"), ("new", "1,2"), ("long", ""), ("odd", "2")] * 20
))  # fmt: skip
TOXIC = "id,comment_text,toxic,insult,threat\n" + "".join(
    f"c{n},what a {n} is this,{n % 2},{n % 3 % 2},0\n" for n in range(30)
)
LISTS = "".join(json.dumps({"text": f"a {n}", "labels": ["up", "down"][: n % 3]}) + "\n" for n in range(30))
POLARITY = "".join(f"{n % 2}\tthis is text {n}\n" for n in range(30))


@each_row(
    ("name", "content", "objective"),
    {
        "numbers with commas, without a header": (
            "train.tsv",
            EMOTIONS,
            {"labels": ["0", "1", "2"], "several": True, "text": "1", "label": "2"},
        ),
        "a column for each label": (
            "train.csv",
            TOXIC,
            {"labels": ["toxic", "insult", "threat"], "several": True, "text": "comment_text", "label": ""},
        ),
        "lists": ("train.jsonl", LISTS, {"labels": ["down", "up"], "several": True, "text": "text", "label": "labels"}),
        "a class first, without a header": ("train.tsv", POLARITY, {"labels": ["0", "1"], "text": "2", "label": "1"}),
        "without a header, with commas": (
            "train.csv",
            POLARITY.replace("\t", ","),
            {"labels": ["0", "1"], "text": "2", "label": "1"},
        ),
        "a header that no one knows": (
            "train.tsv",
            "kind\twords\n" + POLARITY,
            {"labels": ["0", "1"], "text": "words", "label": "kind"},
        ),
    }.values(),
)
def test_labels_and_headers_are_found(
    name: str, content: str, objective: dict[str, object], model: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    drafted = draft("classify", model, tmp_path / name)
    found = drafted.values["train"]["objective"]
    assert {key: value for key, value in found.items() if key != "kind"} == objective
    files = drafted.recipe().task.files
    assert files is not None
    read = list(files.read(tmp_path / name, Problems()))
    assert len(read) == (120 if content == EMOTIONS else 30), "the first row is data, or it is not"


def test_numbers_with_decimal_commas_are_not_taken_for_several_labels(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    ratings = ("1,5", "2", "3,5", "2,5", "1")
    file.write_text("text;rating\n" + "".join(f"this is {n};{ratings[n % 5]}\n" for n in range(60)), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"'rating' has values such as '1,5', which may be numbers with a decimal comma"
    ):
        draft("classify", model, file)
    said = draft("classify", model, file, ["train.objective.several=true"]).values["train"]["objective"]
    assert said["labels"] == ["1", "2", "3", "5"]
    file.write_text(file.read_text(encoding="utf-8").replace(",", "."), encoding="utf-8")
    assert draft("classify", model, file).values["train"]["objective"]["labels"] == ["rating"], "a regression"


def test_what_the_user_says_of_columns_counts(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("a b\tx,y\nc d\tx\ne f\ty\n", encoding="utf-8")
    numbers = ["train.objective.text=1", "train.objective.label=2"]
    assert draft("classify", model, file, numbers).values["train"]["objective"]["labels"] == ["x", "y"]
    one = draft("classify", model, file, [*numbers, "train.objective.several=false"]).values["train"]["objective"]
    assert one["labels"] == ["x", "x,y", "y"] and not one.get("several")
    with pytest.raises(DataError, match=r"train.objective.label=NAME \(a number from 1 if the file has no header\)"):
        draft("classify", model, file)


@pytest.mark.parametrize("given", ["steps=50", "tokens=5000", "samples=64", "epochs=2"])
def test_the_length_that_the_user_gives_takes_the_place_of_the_epochs(given: str, model: Path, tmp_path: Path) -> None:
    drafted = draft("classify", model, data_of("classify", tmp_path / "data"), [f"train.phases.0.{given}"])
    name, _, value = given.partition("=")
    phase = drafted.recipe().train.phases[0]
    assert getattr(phase, name) == int(value) and (name == "epochs") == (phase.epochs is not None)
