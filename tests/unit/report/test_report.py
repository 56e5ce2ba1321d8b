import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.conftest import written
from tests.unit.report.test_facts import classifying

from bertwright.core.artifact import open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.files import read_json
from bertwright.report.config import VERSION, ReportConfig
from bertwright.report.facts import read_facts
from bertwright.report.run import run, summary
from bertwright.report.scores import predictions

Make = Callable[..., Path]
STAGES = ["corpus", "vocab", "examples", "train", "evaluate", "export"]
VOID = {"meta", "link", "br", "hr", "img", "input"}
LOADING = {"src", "srcset", "href", "data", "action", "poster"}


class Page(HTMLParser):
    """Balanced tags, the addresses that are followed or loaded, the ids, and the visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in LOADING]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def report(folder: Path, **settings: Any) -> Page:
    artifacts = {stage: open_artifact(folder / stage) for stage in STAGES}
    return Page(run(ReportConfig(**settings), folder, artifacts).read_text(encoding="utf-8"))


def test_the_page_is_whole_and_loads_nothing(run_folder: Make) -> None:
    folder = run_folder()
    page = report(folder)
    assert page.addresses.count("export/hf/") == 1, "the one thing beside it that is linked"
    inside = [address for address in page.addresses if address != "export/hf/"]
    assert inside and all(address.startswith("#") for address in inside)
    assert {address[1:] for address in inside} == set(page.ids)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object"})
    style = re.search(r"<style>(.*?)</style>", (folder / "report.html").read_text(encoding="utf-8"), re.DOTALL)
    assert style and "url(" not in style[1] and "@import" not in style[1]


def test_the_page_shows_what_the_stages_counted(run_folder: Make) -> None:
    text = report(run_folder()).text.replace("\u00a0", " ")
    for shown in (
        "2.31 nats",
        "word frequencies alone: 5.90, so 3.59 better",
        "always guessing “.”: 6.1 %",
        "7.3 M",
        "Az árvíztűrő tükörfúrógép Győrben [MASK], ahol a folyó <széles> & mély.",
        "too few sentences (min_sentences)",
        "4,386,178",
        'source = "hu <wiki>.xml"',
        "transformers 5.23.0",
    ):
        assert shown in text


def test_the_page_shows_dropped_texts_and_sources(run_folder: Make) -> None:
    text = report(run_folder()).text.replace("\u00a0", " ")
    for shown in (
        "same text as an earlier one80.2 %",
        "nearly the same text as an earlier one50.1 %",
        "too short without repeated paragraphs20 %",
        "documents with their copies3,523",
        "repeated paragraphs left out699",
        "paragraphs removed: boilerplate77",
        "masked: e-mail addresses33",
        "https://hu.wikipedia.org/wiki/Kezd%C5%91lapdump11CC BY-SA2,523 of 3,4001,000,067no, the file is "
        "truncated; 9,988",
        "novels <2>text122.5unknown500 of 500234,500yes",
        "tests/questions.txt3 of 200 1.5 %0 of 0",
        "learned from 1,801 documents, 50.6 % of the corpus",
        "Cyrillic5,0002.751.250 %60 %14019",
        "Of 1,900 held-out sentences of 26 characters or more, 38 (2 %) have 26 characters in a row",
        "A sentence counts if 13 words in a row",
    ):
        assert shown in text
    assert "not drawn" not in text  # nothing was


def test_accuracies_are_shown_with_label_shares(run_folder: Make) -> None:
    folder = run_folder()
    text = report(folder).text.replace("\u00a0", " ")
    for shown in (
        "52 % of these pairs are random; 52.4 % of training's; always guessing the more common label: 52 %",
        "Gradient norm",
        "Lengths of set 64",
        "51.5 tokens in the mean",
        "runs/first/train (fingerprint 0123456789ab)",
        "Training was started 2 times",
        "600 of 800",
        "Phase 1 was extended from 200 to 300 steps at step 150",
        "In phase 0 the batches 40 to 59 were skipped",
        "The average of the weights is an average <over> 600 updates. At the end of training its held-out loss was "
        "2.750, that of the last weights not a number: the average is better, and the model has the average.",
    ):
        assert shown in text
    assert "Unfinished" not in text and "untrained" not in text
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert html.count('<rect class="column"') == 20 and '<pre tabindex="0" role="region"' in html
    assert re.search(r'Written <time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ">', html)


def test_the_guesses_of_an_untrained_model_are_called_so(run_folder: Make) -> None:
    text = report(run_folder(mlm_loss=5.8, untrained=True, nsp_accuracy=0.5)).text.replace("\u00a0", " ")
    before, _, results = text.partition("Results" + "masked-token loss")
    assert "The model has not learned to use the context." in before
    assert "5.80 nats, is not clearly below 5.90, the loss of word frequencies alone" in before
    assert "They are those of an untrained model." in results
    assert "always guessing the more common label: 52 %, so no better than that" in results


def test_a_score_that_is_no_number_is_shown_as_such(run_folder: Make) -> None:
    text = report(run_folder(mlm_loss=None, perplexity=None, untrained=True)).text
    assert "masked-token lossNaN" in text and "held-out loss, NaN, is not" in text


def test_text_of_others_is_never_markup(run_folder: Make) -> None:
    evil = "<script>alert(1)</script>\"'&"
    line = {"source": "cloze", "text": f"{evil} [MASK] {evil}", "gold": evil, "top": [(evil, 0.5), ("a", 0.1)]}
    page = report(run_folder([line], most_common_token=evil), title=evil)
    assert "script" not in page.tags
    assert page.text.count(evil) >= 6


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems have no names of arbitrary bytes")
def test_a_folder_whose_name_is_not_utf_8_is_reported(run_folder: Make) -> None:
    folder = run_folder()
    folder = folder.rename(folder.with_name(os.fsdecode(b"caf\xe9")))
    assert "caf\\udce9" in report(folder).text
    before = (folder / "report.html").stat().st_mtime_ns
    report(folder)
    assert (folder / "report.html").stat().st_mtime_ns == before


def test_a_second_report_touches_nothing(run_folder: Make) -> None:
    folder = run_folder()
    report(folder)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.rglob("*")}
    report(folder)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.rglob("*")} == before


def test_summary_has_the_numbers_and_the_stages(run_folder: Make) -> None:
    folder = run_folder()
    report(folder)
    summary = read_json(folder / "summary.json")
    wanted = {
        "mlm_loss": 2.31,
        "mlm_accuracy": 0.48,
        "unigram_loss": 5.9,
        "most_common_token_accuracy": 0.061,
        "nsp_accuracy": 0.91,
    }
    assert {name: summary[name] for name in wanted} == wanted
    assert (summary["tokens_seen"], summary["tokens_per_second"]) == (7_300_000, 51_234.5)
    assert (summary["train_seconds"], summary["sequences_per_second"]) == (142.4, 500.0)
    assert list(summary["stages"]) == [*STAGES, "report"]
    del summary["stages"]["report"]
    for name, stage in summary["stages"].items():
        manifest = read_json(folder / name / "manifest.json")
        assert stage == {key: manifest[key] for key in ("version", "fingerprint", "seconds")}
    assert summary["seconds"] == pytest.approx(sum(stage["seconds"] for stage in summary["stages"].values()))


def test_operations_and_hours_of_all_starts_are_shown(run_folder: Make) -> None:
    folder = run_folder()
    page, numbers = report(folder), read_json(folder / "summary.json")
    assert (numbers["tflops_done"], numbers["hours"]) == (45_600.0, 0.04)
    assert "45.6 PFLOP" in page.text and "2 min 24 s" in page.text


def test_without_next_sentences_the_page_does_not_speak_of_them(run_folder: Make) -> None:
    folder = run_folder(nsp_accuracy=None, nsp_majority=None)
    assert "next-sentence accuracy" not in report(folder).text
    assert read_json(folder / "summary.json")["nsp_accuracy"] is None


def test_the_report_has_a_version_and_a_fingerprint(run_folder: Make) -> None:
    folder = run_folder()

    def fingerprint(**settings: str) -> str:
        report(folder, **settings)
        stage = read_json(folder / "summary.json")["stages"]["report"]
        assert stage["version"] == VERSION
        return str(stage["fingerprint"])

    first = fingerprint()
    assert re.fullmatch(r"[0-9a-f]{64}", first) and fingerprint() == first
    assert fingerprint(title="another") != first
    manifest = read_json(folder / "vocab" / "manifest.json")
    seal(folder / "vocab", Identity("vocab", 2, {}, manifest["inputs"]), manifest["counts"], 0.0)
    assert fingerprint() != first


def test_without_predictions_the_page_says_why(run_folder: Make) -> None:
    folder = run_folder([])
    assert "None were requested" in report(folder).text
    evaluate = open_artifact(folder / "evaluate")
    config = {"evaluate": {**evaluate.manifest["config"]["evaluate"], "samples": 8}}
    seal(folder / "evaluate", Identity("evaluate", 1, config, {}), evaluate.counts, 1.0)
    assert "None of the held-out sentences that were tried is suitable" in report(folder).text
    made = read_facts(folder, {name: open_artifact(folder / name) for name in STAGES}, "")
    regression = replace(made, stages={**made.stages, "train": classifying(made.stages["train"], "similarity")})
    assert "The model predicts a number for each text" in written(predictions(regression))


def test_bits_a_character_stand_where_they_were_scored(run_folder: Make) -> None:
    text = report(run_folder(bits_per_character=2.494)).text
    assert "which training never saw. Their loss is 2.49 bits a character, white space not counted." in text


def test_bits_a_character_stand_in_the_summary(run_folder: Make) -> None:
    folder = run_folder(bits_per_character=2.494)
    facts = read_facts(folder, {stage: open_artifact(folder / stage) for stage in STAGES}, "")
    assert summary(facts, ReportConfig())["bits_per_character"] == 2.494


@pytest.mark.parametrize("scores", [{}, {"bits_per_character": None}], ids=["of an older run", "of a loss that is NaN"])
def test_without_them_nothing_is_said_of_bits(run_folder: Make, scores: dict[str, Any]) -> None:
    text = report(run_folder(**scores)).text
    assert "which training never saw. The model for" in text and "bits a character" not in text
