"""Charts as pictures that need no page."""

import base64
import re
from xml.etree.ElementTree import fromstring

from bertwright.page.chart import Chart, Series
from bertwright.page.picture import Pictures, picture

POINTS = [(0.0, 1.0), (5.0, 3.0)]


def _picture(*names: str) -> str:
    series = [Series(name, POINTS, "train") for name in names]
    return picture(Chart("Szó & <b>", "loss", "A sentence.", series, "{:.1f}".format))


def test_a_picture_is_svg_that_names_no_other_file() -> None:
    svg = fromstring(_picture("tanító"))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["Szó & <b>", "tanító"]
    for line in svg.iter("{http://www.w3.org/2000/svg}polyline"):
        assert all(f".{style}" in _picture("x") for style in line.attrib["class"].split() if style != "train")
    assert not re.search(r"url\(|href|@import|<script", _picture("tanító"))


def test_what_does_not_fit_a_row_of_the_legend_begins_another() -> None:
    svg = fromstring(_picture("a name", "a name of forty letters, more or less so", "a third name that is long"))
    (_, top, width, height) = map(float, svg.attrib["viewBox"].split())
    keys = [each for each in svg.iter("{http://www.w3.org/2000/svg}text") if "text-anchor" not in each.attrib][1:]
    assert len(keys) == 3 and len({each.attrib["y"] for each in keys}) == 2
    assert all(top < float(each.attrib["y"]) <= 0 and float(each.attrib["x"]) < width for each in keys)
    assert top + height == 270


def test_a_notebook_shows_images() -> None:
    shown = Pictures({'"Loss"': "<svg>ő</svg>"})._repr_html_()
    (data,) = re.findall(r'alt="&quot;Loss&quot;".*base64,([^"]+)', shown)
    assert base64.b64decode(data).decode() == "<svg>ő</svg>" and "<svg" not in shown
