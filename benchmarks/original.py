"""The steps between the programs that the original recipe calls, each in plain Python.

    python benchmarks/original.py format FOLDER OUT              WikiExtractor's output, one article a line
    python benchmarks/original.py sentences IN OUT               a regular expression, where quntoken is not available
    python benchmarks/original.py filter IN OUT LANGUAGE LETTERS the TurkuNLP document filter, with langdetect
    python benchmarks/original.py vocabulary IN STEM SIZE        SentencePiece BPE, converted to a BERT vocabulary

Sources: NVIDIA DeepLearningExamples BERT, data/WikicorpusTextFormatting.py (the first line, the title, is left out);
spyysalo/wiki-bert-pipeline; SentencePiece with vocab_size 32000, character_coverage 0.9999, bpe, and the entry order of
sent2wordpiece. Runs in the environment of the peers; of our code it uses only the reimplemented filter.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))

UNKNOWN_TO_LANGDETECT = {"sr", "eu", "hy", "be", "ga", "gl", "la", "gd", "ug", "cu", "mt"}
SPECIAL = ["[PAD]", *(f"[unused{n}]" for n in range(100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def one_line_each(folder: str, out: str) -> None:
    with open(out, "w", encoding="utf-8") as handle:
        for path in sorted(Path(folder).rglob("wiki_*")):
            for article in path.read_text(encoding="utf-8").split("</doc>"):
                lines = article.partition("<doc ")[2].split("\n")[2:]
                if text := " ".join(line.strip() for line in lines if line.strip()):
                    handle.write(text + "\n")


def sentences(text: str, out: str) -> None:
    with open(text, encoding="utf-8") as articles, open(out, "w", encoding="utf-8") as handle:
        for article in articles:
            handle.write(re.sub(r"(?<=[.!?…]) +(?=\W*[^\W\d_a-z])", "\n", article.strip()) + "\n\n")


def kept(text: str, out: str, language: str, letters: str) -> None:
    from document_filter import first_failure
    from langdetect import DetectorFactory, LangDetectException, detect

    DetectorFactory.seed = 0
    with open(out, "w", encoding="utf-8") as handle:
        for document in _documents(text):
            if first_failure(document, letters):
                continue
            try:
                if language not in UNKNOWN_TO_LANGDETECT and detect(" ".join(document)) != language:
                    continue
            except LangDetectException:
                continue
            handle.write("\n".join(document) + "\n\n")


def _documents(path: str) -> Iterator[list[str]]:
    document: list[str] = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                document.append(line.strip())
            elif document:
                yield document
                document = []
    if document:
        yield document


def vocabulary(text: str, stem: str, size: str) -> None:
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    SentencePieceTrainer.train(
        input=text,
        model_prefix=stem,
        vocab_size=int(size),
        model_type="bpe",
        character_coverage=0.9999,
        input_sentence_size=100_000_000,
        shuffle_input_sentence=True,
        hard_vocab_limit=False,
        num_threads=1,
    )
    model = SentencePieceProcessor(model_file=f"{stem}.model")
    pieces = [model.id_to_piece(n) for n in range(3, model.get_piece_size())]  # after <unk>, <s>, </s>
    words = [piece[1:] if piece.startswith("▁") else f"##{piece}" for piece in pieces]
    Path(f"{stem}.txt").write_text("\n".join([*SPECIAL, *(word for word in words if word)]) + "\n", encoding="utf-8")


STEPS = {"format": one_line_each, "sentences": sentences, "filter": kept, "vocabulary": vocabulary}

if __name__ == "__main__":
    STEPS[sys.argv[1]](*sys.argv[2:])
