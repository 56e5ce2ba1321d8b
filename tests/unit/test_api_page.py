"""The page of the Python API says what the docstrings say."""

import bertwright
from bertwright import plugins
from tools.api import MEMBERS, PAGE, text


def test_the_page_is_written_from_the_docstrings() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "write it anew: python -m tools.api"


def test_every_public_name_is_described() -> None:
    page = text()
    for name in {*bertwright.__all__, *plugins.__all__} - {"__version__", "Section"}:
        entry = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert len(entry.strip()) > 40, name
    for name, members in MEMBERS.items():
        assert all(f"### {name}.{member}\n\n" in page for member in members)
