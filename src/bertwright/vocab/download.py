"""Downloads the vocabularies that Google published with BERT, by name, and verifies their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT, Log
from bertwright.core.remote import fetch

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Published:
    """A vocabulary at Hugging Face: identical to the one in Google's archives, which include 400 MB of weights."""

    repository: str
    sha256: str
    """As in NVIDIA DeepLearningExamples, GooglePretrainedWeightDownloader.py."""
    lower_case: bool
    """Whether it was trained on lower-cased text without accents."""


PUBLISHED = {
    "google-uncased": Published(
        "google-bert/bert-base-uncased", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", True
    ),
    "google-cased": Published(
        "google-bert/bert-base-cased", "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02", False
    ),
    "google-multilingual-cased": Published(
        "google-bert/bert-base-multilingual-cased",
        "fe0fda7c425b48c516fc8f160d594c8022a0808447475c1a7c6d6479763f310c",
        False,
    ),
}


def download(name: str, folder: Path, log: Log = SILENT, hub: str = HUB) -> Path:
    """Download the vocabulary `name` to `folder/NAME-vocab.txt` unless it exists, and log the settings to use with it.

    Returns the path. Raises `RecipeError` for an unknown name, and `DataError` if the file cannot be downloaded or is
    not the published one.
    """
    if name not in PUBLISHED:
        raise RecipeError(f"there is no vocabulary {name!r} to download; use one of {', '.join(PUBLISHED)}.")
    published = PUBLISHED[name]
    # The hash is that of NVIDIA's downloader, so a file replaced on the hub is rejected.
    url = f"{hub}/{published.repository}/resolve/main/vocab.txt"
    path = fetch(url, folder / f"{name}-vocab.txt", log, sha256=published.sha256)
    setting = str(published.lower_case).lower()
    log.say(f"vocab: {path}; use it with vocab.file={path} vocab.lower_case={setting} vocab.strip_accents={setting}")
    return path
