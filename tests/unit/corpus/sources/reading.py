"""Reading a source from end to end, in this process."""

from collections import Counter
from pathlib import Path
from typing import Any

from bertwright.core.log import SILENT
from bertwright.core.work_split import SINGLE
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article
from bertwright.corpus.sources.known import documents, format_of
from bertwright.corpus.sources.source import open_source


class Read:
    """The articles of a source, its pieces, and how they ended."""

    def __init__(self, path: Path | str, folder: Path, **settings: Any) -> None:
        config = CorpusConfig(source={"path": str(path), **settings}, language="hu", cache_dir=folder / "downloads")
        self.source = open_source(config.source[0], config.cache_dir, SILENT)
        self.articles: list[Article] = []
        self.names: list[str] = []
        self.counts: Counter[str] = Counter()
        self.states: list[dict[str, Any]] = []
        for file in self.source.files:
            splits = format_of(file.format).splits
            for piece in splits(file, config.source[0], 0, len(self.names), folder, SINGLE):
                self.names.append(piece.name)
                self.states.append({})
                counts: Counter[str] = Counter()
                header = format_of(file.format).header(file, config.source[0])
                job = ExtractJob(piece, file, header, config, config.source[0], folder)
                self.articles += documents(job, counts, self.states[-1])
                self.counts += counts

    @property
    def texts(self) -> list[list[str]]:
        return [[paragraph.text for paragraph in article.paragraphs] for article in self.articles]

    def facts(self, name: str) -> list[Any]:
        return [article.facts[name] for article in self.articles]
