"""Writes the page of the server as one file with a model inside: the network in 8 bits, a tokenizer, and ONNX Runtime
in WebAssembly. A browser opens it from a disk, and its security policy lets it ask no network.

Texts, of whomever they are, stand in the file as compressed data alone, which the page's scripts show as texts.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.files import read_bytes, write_atomic
from bertwright.core.log import Log
from bertwright.core.numbers import size_of
from bertwright.export.onnx.graph import MOST_BYTES
from bertwright.export.published_copy import as_published
from bertwright.export.runtimes.onnx_runtime import ONNX_INT8
from bertwright.export.runtimes.runtime import Published, installed
from bertwright.model.pretrained_config import read_pretrained
from bertwright.page.files import SHARED
from bertwright.serve.inside.tokenizer import describe_tokenizer
from bertwright.serve.load import about_of
from bertwright.shipped import is_run_folder
from bertwright.vocab.entries import MASK

RUNTIME = Path(__file__).with_name("onnxruntime_web")
"""ONNX Runtime for the web."""
_ENGINE, _PROGRAM = "ort-wasm-simd-threaded.wasm.gz", "ort.wasm.bundle.min.mjs.gz"
_LICENCE, _NOTICES = "LICENSE", "ThirdPartyNotices.txt.gz"
_FOLDERS = (Path(__file__).parents[1] / "talk", SHARED)
"""Where the files of the page of the server are."""
_MAIN = "inside.js"
_BARE = "onnxruntime-web"
"""The name by which that module imports ONNX Runtime."""
_IMPORT = re.compile(r'(\bfrom|\bimport) "\./([\w.]+)"')
MAIL_BYTES = 25_000_000
"""What most providers of mail let an attachment have."""
_BROWSER_BYTES = 500_000_000
"""Browsers hold no text of more than 512 MiB."""
TASKS = ("fill-mask", "similar", "neighbours", "tokenize")
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {style}; "
    "script-src data: 'wasm-unsafe-eval' {scripts}"
)


def refuse_missing() -> None:
    """Raise `MissingExtraError` if no page can be written on this machine."""
    if not installed("onnx"):
        raise MissingExtraError(f"the network of a page is in ONNX, but onnx is not installed: {ONNX_INT8.install}")


def write_page(source: Path, page: Path, log: Log) -> dict[str, Any]:
    """Write the page of a model, which is a folder of transformers, or a run with its export, to the file `page`;
    returns what was written.

    Raises `MissingExtraError` or `RecipeError`, before anything is written, if the page cannot have the model inside.
    """
    refuse_missing()
    given, about = read_pretrained(source / "export" if is_run_folder(source) else source), about_of(source)
    shown = {"title": about.title or source.resolve().name, "language": about.language, "examples": about.examples}
    with as_published(given.source) as folder:
        model = Published(folder)
        content = page_of(model, shown)
    write_atomic(page, content)
    size = len(content)
    log.say(f"page: {page} has {size_of(size)} and runs in any browser, without a network")
    if size > MAIL_BYTES:
        log.say(
            f"warning: most providers of mail carry no attachments of more than {size_of(MAIL_BYTES)}. Put the page "
            "where others can download it, or distil a smaller model from this one (docs/how-to/distil.md)"
        )
    return {"to": "page", "architecture": model.architecture, "bytes": size}


def page_of(model: Published, shown: Mapping[str, Any]) -> bytes:
    """The page of a published model; it shows the `title`, the `language` and the texts `examples` of `shown`. Raises
    `RecipeError` if the page cannot have the model inside."""
    if model.head != "masked":
        raise RecipeError(
            f"{model.folder} is a {model.architecture}, and a page is for models that fill in words. Run this one by "
            "`bertwright serve`."
        )
    if why := ONNX_INT8.refusal(model):
        raise RecipeError(why)
    tokenizer = describe_tokenizer(model.folder)
    if MASK not in tokenizer["special"]:
        raise RecipeError(f"the tokenizer of {model.folder} has no {MASK}, which stands for a blank in the page.")
    with TemporaryDirectory(prefix="bertwright-page-") as folder:
        ONNX_INT8.write(model, Path(folder))
        network = read_bytes(Path(folder) / ONNX_INT8.file, MOST_BYTES)
    row = {"id": shown["title"], "tasks": TASKS, "positions": model.positions, "mask": MASK, **shown}
    described = {"row": row, "tokenizer": tokenizer, "embedding": _embedding(network)}
    page = _page(
        {
            "about": _compressed(json.dumps(described, ensure_ascii=False).encode()),
            "network": _compressed(network),
            "engine": (RUNTIME / _ENGINE).read_bytes(),
            "notices": _compressed(b"\n".join([(RUNTIME / _LICENCE).read_bytes(), _expanded(_NOTICES)])),
        }
    )
    if len(page) > _BROWSER_BYTES:
        raise RecipeError(
            f"the page would have {size_of(len(page))}, and browsers open no text of more than "
            f"{size_of(_BROWSER_BYTES)}. Run this model by `bertwright serve`, or distil a smaller one from it."
        )
    return page


def _embedding(network: bytes) -> dict[str, int]:
    """Where the file has its input embedding: the places of the codes of all rows, and of the scale of each."""
    import onnx

    tensors = {each.name: each for each in onnx.load_from_string(network).graph.initializer}
    (name,) = (each for each in tensors if each.endswith(".embeddings.token.weight_int8"))
    codes, scales = tensors[name], tensors[name.replace(".weight_int8", ".scales")]
    rows, width = codes.dims
    places = {"codes": network.index(codes.raw_data), "scales": network.index(scales.raw_data)}
    return {"rows": rows, "width": width, **places}


def _page(parts: Mapping[str, bytes]) -> bytes:
    """The page of the server with its files and other scripts inside, and with `parts`, which are compressed."""
    style = _text("page.css") + _text("talk.css")
    addresses = {name: _address("text/javascript", code) for name, code in _modules().items()}
    scripts = [("importmap", json.dumps({"imports": addresses})), ("module", f'import "{_MAIN}";')]
    policy = _POLICY.format(style=_hash(style), scripts=" ".join(_hash(text) for _, text in scripts))
    page, utf8 = _text("talk.html"), '<meta charset="utf-8">'
    for old, new in {
        utf8: f'{utf8}\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        'href="icon.svg"': f'href="{_address("image/svg+xml", _text("icon.svg").encode())}"',
        '<link rel="stylesheet" href="page.css">\n<link rel="stylesheet" href="talk.css">': f"<style>{style}</style>",
        '<script type="module" src="served.js"></script>': "\n".join(
            f'<script type="{kind}">{text}</script>' for kind, text in scripts
        ),
        "</footer>": '<details id="licences" lang="en"><summary>ONNX Runtime: MIT License</summary></details></footer>',
        "</body>": "".join(
            f'<script type="application/gzip" id="{name}">{base64.b64encode(content).decode()}</script>\n'
            for name, content in parts.items()
        ) + "</body>",
    }.items():  # fmt: skip
        before, found, after = page.partition(old)
        assert found, f"talk.html has no {old}"
        page = before + new + after
    return page.encode()


def _modules() -> dict[str, bytes]:
    """The modules of the page by the names under which they import each other, which are no paths: where the text of a
    module is its address, there is nothing that a path could begin from."""
    found: dict[str, bytes] = {_BARE: _expanded(_PROGRAM)}
    waiting = [_MAIN]
    while waiting:
        name = waiting.pop()
        if name not in found:
            code = _text(name)
            waiting += [each for _, each in _IMPORT.findall(code)]
            found[name] = _IMPORT.sub(r'\1 "\2"', code).encode()
    return found


def _text(name: str) -> str:
    return next(folder / name for folder in _FOLDERS if (folder / name).exists()).read_text(encoding="utf-8")


def _expanded(name: str) -> bytes:
    return gzip.decompress((RUNTIME / name).read_bytes())


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
