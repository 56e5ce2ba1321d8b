"""spaCy pipelines: the tags of words are the model's, entities are read from them, and no code of ours is needed."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.conftest import SHARED
from tests.rows import each_row
from tests.unit.export.tiny import TEXTS, entries, publish
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import models, normalizers

from bertwright.examples.problems import Problems
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.differences import CASED, LOWER
from bertwright.export.runtimes.runtime import Published
from bertwright.export.runtimes.spacy import Spacy
from bertwright.export.runtimes.spacy_words import DIFFERENCES, UNKNOWN
from bertwright.model.bert.network import BertConfig
from bertwright.model.classifier import Classifier
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.tagging.files import Layout, read_sentences
from bertwright.tasks.tagging.schemes import all_tags, read_entities
from bertwright.vocab.entries import TextSettings

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")]
pytest.importorskip("spacy_curated_transformers", reason="pip install 'bertwright[spacy]'")

RUNTIME = Spacy()
HEAD = "ForTokenClassification"
ENTITIES = all_tags(("PER", "LOC"), "iob2")
LINES = (*TEXTS, " two  towns ", "town " * 100, "☃", "a/b-c's (d)", "")
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-spacy.md"


def write(model: Published, out: Path) -> Path:
    assert RUNTIME.refusal(model) == RUNTIME.missing() == ""
    out.mkdir()
    RUNTIME.write(model, out)
    return out


def pipeline(model: Published, out: Path) -> Any:
    import spacy

    return spacy.load(write(model, out))


@each_row(("family", "lower_case"), [("bert", False), ("bert", True), ("distilbert", False), ("distilbert", True)])
def test_ids_and_logits_are_those_of_transformers(family: str, lower_case: bool, tmp_path: Path) -> None:
    place = tmp_path / f"{family}{lower_case}"
    model = publish(place / "hf", family, HEAD, ENTITIES, lower_case)
    out = write(model, place / "spacy")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.folder)
    network = transformers.AutoModelForTokenClassification.from_pretrained(model.folder).eval()
    before = torch.get_num_threads()
    with RUNTIME.open(model, out, 1) as reader:
        for line in LINES:
            ids = tokenizer(line, truncation=True, max_length=64)["input_ids"]
            assert reader.ids(line) == ids
            with torch.inference_mode():
                expected = network(torch.tensor([ids])).logits[0].numpy()
            np.testing.assert_allclose(reader.run(line)["logits"], expected, atol=1e-4)
    assert torch.get_num_threads() == before


@each_row("family", ("bert", "distilbert"))
def test_words_have_the_tags_that_predict_gives_them(family: str, tmp_path: Path) -> None:
    model = publish(tmp_path / family, family, HEAD, ENTITIES, initializer_range=0.6)
    nlp, encoder = pipeline(model, tmp_path / f"{family}-spacy"), Encoder(model.folder)
    docs = list(nlp.pipe(TEXTS))  # of several lengths at once
    check_words(nlp, encoder, docs)
    assert len({token.tag_ for doc in docs for token in doc}) > 1
    for doc in docs:
        tags, words = [token.tag_ for token in doc], [token.text for token in doc]
        found, _ = read_entities(tags, "iob2")
        assert [(e.start, e.end, e.label_) for e in doc.ents] == [tuple(each) for each in found]
        assert doc.has_annotation("ENT_IOB", require_complete=True) and "".join(words) == doc.text.replace(" ", "")


def check_words(nlp: Any, encoder: Encoder, docs: Sequence[Any]) -> None:
    """The tags of documents, and the logits, are those of the encoder for the same words."""
    logits = nlp.get_pipe("tagger").model.predict(docs)
    expected = encoder.tag([[token.text for token in doc] for doc in docs])
    for doc, logits_WC, tagged in zip(docs, logits, expected, strict=True):
        assert [token.tag_ for token in doc] == [tag for tag, _ in tagged], doc.text
        shares = torch.from_numpy(logits_WC).softmax(-1).max(-1).values.tolist()
        assert shares == pytest.approx([share for _, share in tagged], abs=1e-4)


@each_row("scheme", ("iob2", "bioes"))
def test_entities_are_read_from_tags_as_conlleval_reads_them(scheme: Any, tmp_path: Path) -> None:
    from spacy.tokens import Doc

    labels = all_tags(("PER", "LOC"), scheme)
    nlp = pipeline(publish(tmp_path / scheme, "bert", HEAD, labels), tmp_path / f"{scheme}-spacy")
    ruler = nlp.get_pipe("attribute_ruler")
    for tags in product(labels, repeat=3):  # every sequence, whole and broken
        doc = ruler(Doc(nlp.vocab, words=["a", "b", "c"], tags=tags))
        found, _ = read_entities(tags, scheme)
        assert [(e.start, e.end, e.label_) for e in doc.ents] == [tuple(each) for each in found], tags
    inside = "E-PER" if scheme == "bioes" else "I-PER"
    doc = ruler(Doc(nlp.vocab, words=["Ada", "\n", "Lovelace", "\n", "b"], tags=["B-PER", "O", inside, "B-PER", "O"]))
    assert [(e.start, e.end) for e in doc.ents] == [(0, 3)]
    assert [token.tag_ for token in doc] == ["B-PER", "_SP", inside, "_SP", "O"]


def test_tags_of_universal_dependencies_are_parts_of_speech_and_others_are_not(tmp_path: Path) -> None:
    labels = ["NOUN", "VERB", "PUNCT", "Fn", "AUX"]
    model = publish(tmp_path / "hf", "bert", HEAD, labels)
    nlp = pipeline(model, tmp_path / "spacy")
    docs = [nlp(text) for text in ("  Az árvíztűrő \n tükörfúrógép  ", *TEXTS)]
    tokens = [token for doc in docs for token in doc]
    assert {token.pos_ for token in tokens if token.is_space} == {"SPACE"}
    assert {(token.tag_, token.pos_) for token in tokens if not token.is_space} <= {
        *((label, label) for label in labels if label != "Fn"), ("Fn", ""),
    }  # fmt: skip
    assert not any(doc.ents for doc in docs)
    check_words(nlp, Encoder(model.folder), docs[1:])
    # White space has no piece, so that the words beside it are read as if it were not there.
    (spaced,) = nlp.get_pipe("tagger").model.predict(docs[:1])
    (plain,) = nlp.get_pipe("tagger").model.predict([nlp("Az árvíztűrő tükörfúrógép")])
    np.testing.assert_allclose(spaced[[not token.is_space for token in docs[0]]], plain, atol=1e-5)


def test_empty_and_long_texts_are_tagged(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert", HEAD, ENTITIES)
    nlp = pipeline(model, tmp_path / "spacy")
    none, blank, long = nlp.pipe(["", " \n", "word " * 90])
    assert (len(none), len(blank), len(long)) == (0, 1, 90) and all(token.tag_ for token in long)
    # What fits is read in one piece, with its end.
    words = ["A"] * 62
    assert [t.tag_ for t in nlp(" ".join(words))] == [tag for tag, _ in Encoder(model.folder).tag([words])[0]]


def test_a_tagger_of_our_own_export(trained: Callable[..., Any], tmp_path: Path) -> None:
    vocab = trained(lower_case=True).vocab
    rows = int(vocab.counts["entries"])
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=rows + 6, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=64, initializer_range=0.3, labels=ENTITIES, head="token", next_sentence=False,
    )  # fmt: skip
    (tmp_path / "hf").mkdir()
    write_hf_folder(tmp_path / "hf", Classifier(config).eval(), vocab)
    (tmp_path / "hf" / "README.md").write_text("---\nlanguage: hu\nlicense: mit\n---\n# A tagger\n", encoding="utf-8")
    model = Published(tmp_path / "hf")
    nlp = pipeline(model, tmp_path / "spacy")
    assert nlp.lang == "hu"
    check_words(nlp, Encoder(model.folder), list(nlp.pipe(TEXTS)))


@each_row(
    ("card", "language"),
    [("---\nlanguage:\n- en\n---\n", "en"), ("---\nlanguage: [en, hu]\n---\n", "xx"), ("# None\n", "xx"),
     ("---\nlanguage: qqq\n---\n", "xx"), ("---\nlicense: mit\n---\n", "xx")],
)  # fmt: skip
def test_the_rules_of_words_are_those_of_the_language_of_the_card(card: str, language: str, tmp_path: Path) -> None:
    place = tmp_path / str(abs(hash(card)))
    model = publish(place / "hf", "bert", HEAD, ENTITIES)
    (model.folder / "README.md").write_text(card, encoding="utf-8")
    assert pipeline(model, place / "spacy").lang == language


REFUSED = {
    "BertForMaskedLM": "it runs taggers of words, which this model is not",
    "ModernBertForTokenClassification": "spacy-curated-transformers has no networks of the family modernbert",
    "BertForTokenClassification": "its vocabulary is not one of BERT's WordPiece, which spaCy reads for this family",
    "DistilBertForTokenClassification": "its tokenizer does more to texts than lower-casing and stripping of accents",
}


@each_row("architecture", REFUSED)
def test_what_it_cannot_run_is_refused(architecture: str, tmp_path: Path) -> None:
    folder = tmp_path / architecture
    folder.mkdir()
    family = architecture.removesuffix("ForTokenClassification").removesuffix("ForMaskedLM").lower()
    tokenizer = FastTokenizer(models.WordPiece({}) if family == "distilbert" else models.BPE())
    tokenizer.normalizer = normalizers.Replace("a", "b")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": family, "architectures": [architecture]}))
    assert RUNTIME.refusal(Published(folder)) == REFUSED[architecture]


@each_row("settings", (CASED, LOWER))
def test_the_words_that_get_other_ids_are_known(settings: TextSettings, tmp_path: Path) -> None:
    known = [each for each in DIFFERENCES if each.settings == settings]
    place, lower = tmp_path / str(settings.lower_case), settings.lower_case
    texts = [*TEXTS, *(each.example for each in known)]
    model = publish(place / "hf", "bert", HEAD, ENTITIES, lower_case=lower, strip_accents=False, texts=texts)
    encoder = Encoder(model.folder)
    with RUNTIME.open(model, write(model, place / "spacy"), 1) as reader:
        for word, reason in (*((each.example, each.reason) for each in known), ("flows☃", UNKNOWN)):
            flat, _ = encoder.tokenizer.encode_texts([word])
            assert reader.ids(word)[1:-1] != flat.tolist(), f"{word!r}: correct run-in-spacy.md"
            assert reason in RUNTIME.explain(model, f"The river {word} flows"), word
        assert not any(RUNTIME.explain(model, text) for text in TEXTS)


@each_row(
    ("files", "others"),  # one word is Chinese
    [(["hu_nerkor/devel.tsv", "ud_hungarian_szeged/hu_szeged-ud-test.conllu"], 1),
     (["uner_english_ewt/en_ewt-ud-dev.iob2", "wnut17/emerging.test.conll"], 0)],
)  # fmt: skip
def test_words_of_real_texts_get_the_same_ids_and_tags(files: list[str], others: int, tmp_path: Path) -> None:
    from spacy.tokens import Doc

    paths = [SHARED / "data" / "eval" / file for file in files]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"there are no {', '.join(files)} in {SHARED / 'data' / 'eval'}")
    sentences = [list(each.words) for path in paths for each in read_sentences(path, Layout("", ""), Problems())[1]]
    place = tmp_path / Path(files[0]).parent
    model = publish(place / "hf", "bert", HEAD, ENTITIES, texts=[" ".join(words) for words in sentences])
    nlp, encoder = pipeline(model, place / "spacy"), Encoder(model.folder)
    distinct = sorted({word for words in sentences for word in words})
    (found,) = nlp.get_pipe("transformer").model.get_ref("piece_encoder").predict([Doc(nlp.vocab, words=distinct)])
    flat, lengths = encoder.tokenizer.encode_texts(distinct)
    ours = np.split(flat, np.cumsum(lengths)[:-1])
    theirs = np.split(found.dataXd, np.cumsum(found.lengths)[:-1])[1:-1]
    differing = [word for word, a, b in zip(distinct, ours, theirs, strict=True) if a.tolist() != b.tolist()]
    assert len(differing) == others, differing
    docs = [Doc(nlp.vocab, words=words) for words in sentences[::40] if sum(map(len, words)) < 60]
    check_words(nlp, encoder, list(nlp.pipe(docs)))


def test_the_program_of_the_guide_runs_where_there_is_no_bertwright(tmp_path: Path) -> None:
    program = "".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL))
    write(publish(tmp_path / "hf", "bert", HEAD, ENTITIES), tmp_path / "my-tagger")
    without = "import sys; sys.modules['bertwright'] = None\n"
    done = subprocess.run([sys.executable, "-c", without + program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[0] == "Budapest"


def test_entries_of_the_small_vocabulary_are_distinct() -> None:
    assert len(set(entries())) == len(entries())
