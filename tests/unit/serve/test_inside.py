"""A page with a model inside answers from a file, without any network, as the same model does in Python."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tests.browser import Page, browsing, needs_browser
from tests.rows import each_row
from tests.unit.export.tiny import publish, publish_ours

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.export.onnx.graph import quantized
from bertwright.export.runtimes.onnx_runtime import ONNX_INT8
from bertwright.export.runtimes.runtime import Published
from bertwright.model.text_encoder import Encoder
from bertwright.serve.inside import page as inside_page
from bertwright.serve.inside.page import RUNTIME, page_of, write_page
from bertwright.vocab.entries import MASK

pytestmark = pytest.mark.heavy
pytest.importorskip("onnx", reason="pip install 'bertwright[onnx]'")
pytest.importorskip("onnxruntime", reason="pip install 'bertwright[onnx]'")

EVIL = "</script><script>alert(1)</script><!--<script>"
LINES = (
    f"A főváros {MASK}, a folyó a Duna.",
    f"Az a\u0301rvíztűrő 🦊 {MASK} készült {MASK}.",
    f"THE RIVER {MASK}",
    MASK,
)
READY = "document.querySelectorAll('#columns .share').length > 2"


class Opened(NamedTuple):
    """A page in a browser, and the model that it has inside."""

    page: Page
    model: Published

    def ask(self, call: str, *given: Any) -> Any:
        """What the model object of the page answers."""
        words = ", ".join(map(json.dumps, (None, *given)))
        return self.page.value(f'import("inside.js").then(({{ inside }}) => inside.{call}({words}))')


def write_to(path: Path, model: Published) -> Path:
    about = {"title": f"Kicsi {EVIL}", "language": "hu", "examples": [f"A [MASK=róka] {EVIL}."]}
    path.write_bytes(page_of(model, about))
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A BERT in a page, opened from a file."""
    folder = tmp_path_factory.mktemp("page")
    model = publish_ours(folder / "model", "bert").published
    file = write_to(folder / "a page (1).html", model)
    with browsing(folder / "user", network=False) as page:
        page.open(file.as_uri())
        page.wait(READY)
        yield Opened(page, model)


@needs_browser
def test_the_words_are_those_of_onnx_runtime_and_torch(opened: Opened, tmp_path: Path) -> None:
    compare(opened, tmp_path)


def compare(opened: Opened, folder: Path) -> None:
    """Compare the words for the blanks of `LINES`, and their probabilities, with ONNX Runtime's and torch's."""
    encoder = Encoder(opened.model.folder)
    entries = encoder.tokenizer.vocabulary
    ONNX_INT8.write(opened.model, folder)
    with ONNX_INT8.open(opened.model, folder, threads=1) as reader:
        for line in LINES:
            found = opened.ask("fillMask", line, len(entries))
            places = [at.span() for at in re.finditer(re.escape(MASK), line)]
            assert [(each["begin"], each["end"]) for each in found["blanks"]] == places
            ((_, _, exact_PV),) = encoder.mask_probabilities([line])
            logits_V = torch.from_numpy(reader.run(line)["logits"])  # of the first blank
            shares = [{each["word"]: each["probability"] for each in blank["words"]} for blank in found["blanks"]]
            for share in shares:
                assert list(share) == sorted(share, key=share.__getitem__, reverse=True) and share.keys() == set(
                    entries
                )
            ours_PV = np.array([[share[entry] for entry in entries] for share in shares])
            np.testing.assert_allclose(ours_PV[0], logits_V.double().softmax(-1), rtol=0, atol=1e-3)
            # Eight bits change numbers in the third digit.
            np.testing.assert_allclose(ours_PV, exact_PV, rtol=0, atol=0.02)


@needs_browser
def test_it_asks_nothing_of_a_network(opened: Opened) -> None:
    assert {address.partition(":")[0] for address in opened.page.asked} == {"file", "data"}
    assert opened.page.faults == [], "what the page needs, its policy allows"
    sent = "fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'refused')"
    assert opened.page.value(sent) == "refused"
    assert "Content Security Policy" in opened.page.faults[0]
    opened.page.faults.clear()


@needs_browser
def test_texts_of_others_are_shown_as_texts(opened: Opened) -> None:
    assert EVIL in opened.page.text("#examples") and EVIL in opened.page.text("#columns")
    assert opened.page.value("document.scripts.length") == 3, "import map, module, and notices that nobody has opened"
    opened.page.click("#licences summary")
    opened.page.wait("document.querySelectorAll('#licences pre').length == 1")
    assert "MIT License" in opened.page.text("#licences") and "emsdk" in opened.page.text("#licences")


@needs_browser
def test_every_word_of_a_text_as_a_blank(opened: Opened) -> None:
    text = "A főváros, tükörfúrógép [MASK] Duna."
    found = opened.ask("alternatives", text, 2)
    pieces = [each["piece"] for each in opened.ask("tokenize", text)["tokens"]]
    assert [each["word"] for each in found["words"]] == ["A", "főváros", "tükörfúrógép", "Duna"]
    for word in found["words"]:
        begin, end = word["begin"], word["end"]
        assert text[begin:end] == word["word"] and "".join(word["pieces"]).replace("##", "") == word["word"]
        asked = opened.ask("fillMask", f"{text[:begin]}{MASK}{text[end:]}", 500)["blanks"]
        (blank,) = (each["words"] for each in asked if each["begin"] == begin)
        assert blank[:2] == word["alternatives"]
        shares = {each["word"]: each["probability"] for each in blank}
        assert word.get("probability") == (shares[word["word"]] if len(word["pieces"]) == 1 else None)
    assert [len(word["pieces"]) for word in found["words"]][2] > 1 and len(pieces) > 6


@needs_browser
def test_it_is_seen_reached_and_heard(opened: Opened) -> None:
    for width, dark in ((360, True), (1200, False)):
        opened.page.size(width, 800, dark)
        opened.page.value("document.querySelector('#licences').open = true")
        assert opened.page.flaws() == []
        opened.page.value("document.querySelector('#licences').open = false")


@needs_browser
def test_neighbours_and_similar_texts(opened: Opened) -> None:
    encoder = Encoder(opened.model.folder)
    entries = encoder.tokenizer.vocabulary
    codes_VH, scales_V = quantized(encoder.model.encoder.token_weight.detach().numpy()[: len(entries)])
    table_VH = codes_VH * scales_V[:, None]
    ids = encoder.tokenizer.encode_texts(["tükörfúrógép"])[0].astype(int)
    wanted_H = table_VH[ids].mean(0)
    cosine_V = table_VH @ wanted_H / np.linalg.norm(table_VH, axis=1) / np.linalg.norm(wanted_H)
    cosine_V[[*ids, *map(entries.index, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK))]] = -2
    best = np.argsort(-cosine_V)[:5]
    found = opened.ask("neighbours", "tükörfúrógép", 5)
    assert [each["word"] for each in found] == [entries[i] for i in best]
    np.testing.assert_allclose([each["score"] for each in found], cosine_V[best], rtol=0, atol=1e-5)

    query, *texts = "The mill.", "A folyó a Duna.", "the mill", "The old mill.", "The mill."
    vectors_NH = np.stack([each / np.linalg.norm(each) for each in encoder.encode([query, *texts])])
    similar = opened.ask("similar", query, texts, 3)
    assert similar[0] == {"index": 3, "text": "The mill.", "score": pytest.approx(1)}
    for each in similar:
        assert abs(each["score"] - vectors_NH[0] @ vectors_NH[1 + each["index"]]) < 0.05


@needs_browser
def test_what_the_model_does_not_read(opened: Opened) -> None:
    found = opened.ask("fillMask", f"{MASK} {'a ' * 100}{MASK}", 3)
    assert [len(blank["words"]) for blank in found["blanks"]] == [3, 0], "beyond its 64 positions"
    answer = 'import("inside.js").then(({ inside }) => inside.neighbours(null, " ", 3)).catch(String)'
    assert "no letters that the model reads" in opened.page.value(answer)
    assert opened.ask("fillMask", "no blank", 3)["blanks"] == [] and opened.ask("tokenize", "") == {"tokens": []}


@needs_browser
def test_it_answers_while_one_types(opened: Opened) -> None:
    opened.page.value("document.querySelector('#sentence').select()")
    opened.page.type("The ___ mill.")
    opened.page.wait(f"document.querySelector('#columns')?.innerText.includes('mill') && {READY}")
    best = opened.ask("fillMask", f"The {MASK} mill.", 1)["blanks"][0]["words"][0]["word"]
    opened.page.wait(f"document.querySelector('#columns').innerText.includes({json.dumps(best.replace('##', '…'))})")
    assert opened.page.faults == []


@needs_browser
@each_row("family", ["distilbert", "modernbert"])
def test_other_families(family: str, tmp_path: Path) -> None:
    model = publish(tmp_path / "model", family, "ForMaskedLM", lower_case=True)
    with browsing(tmp_path / "user", network=False) as page:
        page.open(write_to(tmp_path / "page.html", model).as_uri())
        page.wait(READY)
        compare(Opened(page, model), tmp_path)


@each_row(
    ("kind", "why"),
    [("ForSequenceClassification", "BertForSequenceClassification, and a page is for models that fill in words"),
     ("", "is a BertModel")],
)  # fmt: skip
def test_what_gets_no_page(kind: str, why: str, tmp_path: Path) -> None:
    model = publish(tmp_path / "model", "bert", kind)
    with pytest.raises(RecipeError, match=why):
        write_to(tmp_path / "page.html", model)
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_folder_without_a_tokenizer_it_reads(tmp_path: Path) -> None:
    model = publish(tmp_path / "model", "bert", "ForMaskedLM")
    (model.folder / "tokenizer.json").unlink()
    (model.folder / "vocab.txt").write_text("[UNK]\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"has no tokenizer\.json"):
        write_to(tmp_path / "page.html", model)


def test_sizes_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = publish(tmp_path / "model", "bert", "ForMaskedLM")
    said = list[str]()
    monkeypatch.setattr(inside_page, "MAIL_BYTES", 1_000_000)
    written = write_page(model.folder, tmp_path / "page.html", Log(said))
    assert written["bytes"] == (tmp_path / "page.html").stat().st_size
    assert re.match(r"page: .*page\.html has \d\.\d+ MB and runs in any browser", said[0])
    assert said[1].startswith("warning: most providers of mail carry no attachments of more than 1 MB")
    monkeypatch.setattr(inside_page, "_BROWSER_BYTES", 2_000_000)
    with pytest.raises(RecipeError, match="browsers open no text of more than 2 MB"):
        write_page(model.folder, tmp_path / "second.html", SILENT)
    assert not (tmp_path / "second.html").exists()


class Log:
    """Keeps what is said."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def say(self, text: str) -> None:
        self.said.append(text)


def test_the_runtime_is_that_of_its_record() -> None:
    """The files of another version would need other notices, and other hashes."""
    record = (RUNTIME / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"\| `(.*\.gz)` \| `([0-9a-f]{64})` \|", record))
    assert rows == {
        file.name: hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest() for file in RUNTIME.glob("*ort*.gz")
    }
    (version,) = re.findall(r"for the web, (.*)", record)
    assert f"ONNX Runtime Web v{version}".encode() in gzip.decompress(
        (RUNTIME / "ort.wasm.bundle.min.mjs.gz").read_bytes()
    )
    assert f"npm package `onnxruntime-web` {version}" in record


def test_the_policy_names_what_is_in_the_page(tmp_path: Path) -> None:
    page = write_to(tmp_path / "page.html", publish(tmp_path / "model", "bert", "ForMaskedLM")).read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    texts = re.findall(r'<style>(.*?)</style>|<script type="(?:importmap|module)">(.*?)</script>', page, re.DOTALL)
    for style, script in texts:
        digest = hashlib.sha256((style or script).encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert len(texts) == 3 and "default-src 'none'" in policy and "unsafe-inline" not in policy
    assert not re.findall(r"(?:src|href)=\"(?!data:|watch/)", page), "nothing is loaded from elsewhere"
