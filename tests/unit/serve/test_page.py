"""The page in a browser, before the real server with tiny models: what people do, and what goes wrong."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import transformers
from starlette.routing import BaseRoute
from tests.browser import Page, browsing, needs_browser
from tests.processes import PATIENCE
from tests.unit.export.tiny import publish, publish_ours

from bertwright.page.server import Listener, guard, listen, run_server
from bertwright.serve.app import Limits, make_app
from bertwright.serve.load import load_models
from bertwright.serve.served import Served
from bertwright.watch.app import watch_routes

pytestmark = [pytest.mark.heavy, needs_browser]
SENTENCE = "The mill by the river."
TUNED = ("sequence", "token", "span", "choice")
DONE = "!document.querySelector('[aria-busy=true]')"


@contextmanager
def serving(
    models: list[Served],
    port: int = 0,
    token: str | None = None,
    limits: Limits | None = None,
    others: Sequence[BaseRoute] = (),
) -> Iterator[Listener]:
    """The server with its page, until the end of the block."""
    listener, started, ended = listen(port=port, token=token), Event(), Event()
    app = guard(make_app(models, limits or Limits(), others), listener)
    thread = Thread(target=run_server, args=(app, listener, lambda address: started.set(), ended.is_set))
    thread.start()
    try:
        assert started.wait(PATIENCE)
        yield listener
    finally:
        ended.set()
        thread.join(PATIENCE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models with blanks, and one for each task, by their names."""
    folder = tmp_path_factory.mktemp("models")
    made = {name: publish(folder / name, name, "ForMaskedLM").folder for name in ("bert", "distilbert")}
    tuned = {head: publish_ours(folder / head, "bert", head).published.folder for head in TUNED}
    return {**made, **tuned}


@pytest.fixture(scope="module")
def served_page(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    """A browser, and the address with the token."""
    with ExitStack() as stack:
        listener = stack.enter_context(serving(load_models(list(folders.values()), [])))
        yield stack.enter_context(browsing(tmp_path_factory.mktemp("browser"))), listener.address


@pytest.fixture
def page(served_page: tuple[Page, str]) -> Page:
    """The page as at the first visit, with a sentence."""
    page, address = served_page
    page.anew()
    page.size(1280, 900)
    page.open(address)
    page.wait("location.hash === '' && document.activeElement.id === 'sentence'")
    write(page, SENTENCE)
    return page


def write(page: Page, text: str) -> None:
    """Write this into the sentence, instead of what is there."""
    page.value("document.getElementById('sentence').focus(), document.getElementById('sentence').select()")
    page.type(text)
    page.wait(DONE)


def guesses(page: Page, column: int = 0) -> list[str]:
    return list(page.value(f"[...document.querySelectorAll('.column-{column} .row .said')].map(e => e.innerText)"))


def expected(folder: Path, text: str) -> list[str]:
    """What transformers guesses, as the page writes it."""
    best = transformers.pipeline("fill-mask", str(folder), top_k=7)(text.replace("___", "[MASK]"))
    return [each["token_str"] for each in best]


def choose_model(page: Page, name: str, column: int = 0) -> None:
    chosen = f"document.querySelector('[data-key=model-{column}]')"
    page.value(f"{chosen}.value = {json.dumps(name)}, {chosen}.dispatchEvent(new Event('change'))")
    page.wait(DONE)


def test_guesses_appear_while_one_types(page: Page, folders: dict[str, Path]) -> None:
    write(page, "")
    page.press(*"The ___ by the river.")
    page.wait(f"document.querySelector('.reading').innerText.endsWith('river.') && {DONE}")
    words = [word.replace("…", "##") for word in guesses(page)]
    best = transformers.pipeline("fill-mask", str(folders["bert"]), top_k=7)("The [MASK] by the river.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    assert words == tokenizer.convert_ids_to_tokens([each["token"] for each in best])
    shown = page.value("[...document.querySelectorAll('.row .number')].map(e => e.innerText)")
    assert shown[0] == f"{best[0]['score'] * 100:.{0 if best[0]['score'] >= 0.0995 else 1}f}%"
    assert page.text(".slot") == guesses(page)[0]
    assert page.text("#announced").startswith(f"1: {words[0]}, ")
    assert not page.faults


def test_a_click_blanks_a_word_and_another_brings_it_back(page: Page) -> None:
    page.click(".word:nth-of-type(1)")
    page.wait(f"document.getElementById('sentence').value === '___ mill by the river.' && {DONE}")
    assert "You hid: The" in page.text(".note")
    page.click(".slot")
    page.wait(f"document.getElementById('sentence').value === {json.dumps(SENTENCE)}")
    assert not page.value("document.querySelectorAll('.slot, .row').length")
    page.click("[data-key=part-2]")
    page.wait("document.querySelectorAll('.row').length === 7")
    second = guesses(page)[1]
    page.click("[data-key=guess-0-1]")
    page.wait("!document.querySelector('.slot')")
    assert second.removeprefix("…") in page.value("document.getElementById('sentence').value")


def test_everything_is_done_by_keys(page: Page) -> None:
    page.press("Home", "ArrowRight", "Enter")
    page.wait(f"document.getElementById('sentence').value === '___ mill by the river.' && {DONE}")
    page.press("Enter")
    page.wait(f"document.getElementById('sentence').value === {json.dumps(SENTENCE)}")
    for _ in range(30):
        page.press("Tab")
        if page.value("document.activeElement.classList.contains('word')"):
            break
    page.press("ArrowRight", "ArrowRight", "ArrowLeft", "Enter")
    page.wait("document.querySelectorAll('.row').length === 7")
    assert page.value("document.getElementById('sentence').value") == "The ___ by the river."
    assert page.value("document.activeElement.className") == "slot"
    third = guesses(page)[2]
    page.press("3")
    page.wait("!document.querySelector('.slot')")
    assert third.removeprefix("…") in page.value("document.getElementById('sentence').value")
    assert page.value("document.activeElement.innerText").endswith(third.removeprefix("…"))
    page.value("document.getElementById('panel-guess').focus()")
    for panel in ("words", "classify", "similar", "pieces", "neighbours", "guess"):
        seen = [page.value("document.activeElement.id")]
        while seen[-1] != f"panel-{panel}":
            page.press("ArrowRight")
            seen.append(page.value("document.activeElement.id"))
            assert len(seen) < 12, seen
            if page.value("document.querySelectorAll('[role=tab]').length") == len(set(seen)):
                break


def test_two_models_answer_side_by_side(page: Page, folders: dict[str, Path]) -> None:
    write(page, "The ___ by the river.")
    page.click("[data-key=compare]")
    page.wait(f"document.querySelectorAll('.column').length === 2 && {DONE}")
    shown = [[word.replace("…", "##") for word in guesses(page, column)] for column in (0, 1)]
    assert shown[0] != shown[1]
    for words, name in zip(shown, ("bert", "distilbert"), strict=True):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folders[name])
        best = transformers.pipeline("fill-mask", str(folders[name]), top_k=7)("The [MASK] by the river.")
        assert words == tokenizer.convert_ids_to_tokens([each["token"] for each in best])
    page.click(".column-1 [data-key=part-4]")
    page.wait("document.querySelectorAll('.column-0 .slot').length === 2")
    choose_model(page, "sequence", 1)
    assert "cannot do this" in page.text(".column-1 .trouble")
    assert len(guesses(page, 0)) == 14
    page.click("[data-key=compare]")
    page.wait("document.querySelectorAll('.column').length === 1")


def test_pieces_and_words_and_neighbours(page: Page, folders: dict[str, Path]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    page.click("#panel-pieces")
    page.wait(f"document.querySelector('.piece') && {DONE}")
    ids = [int(each) for each in page.value("[...document.querySelectorAll('.piece small')].map(e => e.innerText)")]
    assert ids == tokenizer(SENTENCE, add_special_tokens=False).input_ids
    page.click("#panel-words")
    page.wait(f"document.querySelector('.instance') && {DONE}")
    words = page.value("[...document.querySelectorAll('.instance > .said')].map(e => e.innerText)")
    assert words == SENTENCE.rstrip(".").split()
    instead = page.value("document.querySelector('.instance .other').firstChild.data")
    page.click(".instance .other")
    page.wait(f"!document.getElementById('sentence').value.startsWith('The') && {DONE}")
    assert instead.removeprefix("…") in page.value("document.getElementById('sentence').value")
    page.click("#panel-neighbours")
    page.wait(f"document.querySelector('.row') && {DONE}")
    near = guesses(page)[0].removeprefix("…")
    page.click("[data-key=neighbour-0]")
    page.wait(f"document.getElementById('word').value === {json.dumps(near)} && {DONE}")
    assert near not in guesses(page)


def test_models_for_tasks_answer(page: Page) -> None:
    choose_model(page, "sequence")
    page.wait("document.querySelector('[aria-selected=true]').id === 'panel-classify'")
    page.wait("document.querySelectorAll('.row').length === 3")
    assert set(guesses(page)) == {"ja", "nein", "talán"}
    choose_model(page, "token")
    page.wait(f"document.querySelectorAll('.tagged').length === {len(SENTENCE.split())}")
    choose_model(page, "span")
    page.wait("document.querySelector('.answer .number')")
    choose_model(page, "choice")
    page.wait("document.querySelectorAll('.row').length === 2")
    page.value("document.getElementById('choices').focus(), document.getElementById('choices').select()")
    page.type("at noon.\nin the garden.\nof the town.")
    page.wait("document.querySelectorAll('.row').length === 3")
    page.click("#panel-similar")
    page.wait(f"document.querySelectorAll('.row').length === 3 && {DONE}")
    assert not page.faults


def test_what_goes_wrong_is_told_and_what_comes_back_goes_on(folders: dict[str, Path], tmp_path: Path) -> None:
    # Not one of those that other servers of this machine look for.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with browsing(tmp_path / "browser") as page:
        with serving(load_models([folders["bert"]], []), port) as first:
            page.open(f"http://127.0.0.1:{port}/#token=an-old-one")
            page.wait("document.querySelector('#trouble input')")
            assert "does not know this page" in page.text("#trouble")
            page.click("#trouble input")
            page.type(first.token)
            page.press("Enter")
            page.wait(f"document.querySelector('.reading') && {DONE} && document.getElementById('trouble').hidden")
            assert first.token not in page.value("document.documentElement.outerHTML + location.href")
            write(page, "The ___ by the river.")
            words = guesses(page)
            page.click("#panel-neighbours")
            page.wait(f"document.querySelector('.row') && {DONE}")
            page.value("document.getElementById('word').focus(), document.getElementById('word').select()")
            page.type("a" * 300)
            page.wait("document.querySelector('.body .trouble')")
            assert "There is no answer: word: " in page.text(".body .trouble")
            page.click("#panel-guess")
        page.value("document.getElementById('sentence').focus()")
        page.type(" ")
        page.wait("!document.getElementById('trouble').hidden")
        assert "Start it again" in page.text("#trouble")
        with serving(load_models([folders["bert"]], []), port, first.token):
            page.wait(f"document.getElementById('trouble').hidden && {DONE}")
            assert guesses(page) == words
        assert all(each.startswith(f"http://127.0.0.1:{port}/") for each in page.asked), page.asked


@pytest.mark.parametrize(
    ("limits", "told"),
    [(Limits(waiting=0), "is busy"), (Limits(seconds=0), "took too long"), (Limits(bytes=10), "text is too long")],
    ids=["full", "slow", "large"],
)
def test_what_the_server_refuses_is_told(
    served_page: tuple[Page, str], folders: dict[str, Path], limits: Limits, told: str
) -> None:
    page, _ = served_page
    page.anew()
    with serving(load_models([folders["bert"]], []), limits=limits) as listener:
        page.open(listener.address)
        page.wait(
            "[...document.querySelectorAll('.trouble')].some(e => e.checkVisibility() && !e.matches('.mild')) "
            "|| document.getElementById('trouble').innerText.includes('busy')"
        )
        shown = page.value("[...document.querySelectorAll('.trouble')].map(e => e.innerText).join()")
        assert told in shown
        assert page.value("document.querySelectorAll('.word').length"), "the sentence is still there"


def test_the_page_keeps_its_text_when_it_is_loaded_anew(page: Page) -> None:
    page.click("[data-key=part-2]")
    page.click("[data-language=hu]")
    page.wait(f"document.querySelector('h1').innerText.startsWith('Mit') && {DONE}")
    assert page.value("document.documentElement.lang") == "hu"
    page.reload()
    page.wait(f"document.querySelector('.slot')?.innerText.trim() && {DONE}")
    assert page.value("document.getElementById('sentence').value") == "The ___ by the river."
    assert "Kitakarva: mill" in page.text(".note")


def test_the_page_of_a_run_leads_to_its_training(
    served_page: tuple[Page, str], folders: dict[str, Path], tmp_path: Path
) -> None:
    page, _ = served_page
    page.anew()
    with serving(load_models([folders["bert"]], []), others=watch_routes([tmp_path])) as listener:
        page.open(listener.address)
        page.wait("!document.getElementById('training').hidden")
        page.click("[data-language=hu]")
        page.click("#theme")
        page.click("#training")
        page.wait("location.pathname === '/watch/' && document.documentElement?.lang === 'hu'")
        assert page.value("document.documentElement.dataset.theme") == "dark"
        assert listener.token not in page.value("location.href")
        page.wait("document.querySelector('main')")
        assert all(listener.token not in each for each in page.asked)


PANELS = ("guess", "words", "similar", "pieces", "neighbours")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_of_it_is_seen_narrow_and_wide_in_both_languages(page: Page, dark: bool) -> None:
    write(page, "The ___ by the old river stands at Győr, isn't it?")
    page.click("[data-key=compare]")
    for language in ("hu", "en"):
        page.click(f"[data-language={language}]")
        for panel in PANELS:
            page.click(f"#panel-{panel}")
            for width in (360, 1280):
                page.size(width, 800, dark)
                page.wait(DONE)
                assert not (found := page.flaws()), (language, panel, width, found)
    assert not page.faults


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_answers_of_tasks_are_seen_narrow_and_wide(page: Page, dark: bool) -> None:
    write(page, "The mill by the river stands at the old town of Győr, and the baker sells bread there.")
    for name in TUNED:
        choose_model(page, name)
        page.wait("document.querySelector('.row, .tagged, .answer')")
        for width in (360, 1280):
            page.size(width, 800, dark)
            page.wait(DONE)
            assert not (found := page.flaws()), (name, width, found)
    # Every colour of a tag, which a random network may not give.
    colours = [f"hue-{number}" for number in range(6)]
    choose_model(page, "token")
    page.click("#panel-tag")
    page.wait("document.querySelector('.tagged')")
    page.value(f"""document.querySelectorAll('.tagged').forEach((e, i) => {{
      e.className = 'tagged ' + {colours}[i % 6];
      if (!e.querySelector('small')) e.append(Object.assign(document.createElement('small'), {{ textContent: 'LOC' }}));
    }})""")
    assert page.value("document.querySelectorAll('.tagged').length") > len(colours)
    assert not page.flaws()
