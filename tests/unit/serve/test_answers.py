"""Each operation answers what the model answers without a server, by the types that the OpenAPI document describes."""

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from pydantic import TypeAdapter
from tests.rows import each_row
from tests.served import ask

from bertwright.page.server import Listener
from bertwright.serve import messages
from bertwright.serve.served import Served

TEXT = "Az árvíztűrő [MASK] 😀 Győrben [MASK]."


def answer_of(listener: Listener, path: str, kind: Any, **body: Any) -> Any:
    answered = ask(listener, path, body)
    assert answered.status == 200, answered.body
    TypeAdapter(kind).validate_json(answered.body)
    return answered.json


def test_blanks_get_the_words_that_transformers_finds(listener: Listener, folders: dict[str, Path]) -> None:
    (filled,) = answer_of(listener, "/v1/fill-mask", messages.FillMaskAnswer, text=TEXT, top=3)["results"]
    assert [TEXT[blank["begin"] : blank["end"]] for blank in filled["blanks"]] == ["[MASK]", "[MASK]"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["masked"])
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folders["masked"])
    given = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        p = theirs(**given).logits[0][given["input_ids"][0] == tokenizer.mask_token_id].softmax(-1).topk(3)
    for blank, ids, shares in zip(filled["blanks"], p.indices.tolist(), p.values.tolist(), strict=True):
        assert [word["word"] for word in blank["words"]] == tokenizer.convert_ids_to_tokens(ids)
        assert [word["probability"] for word in blank["words"]] == pytest.approx(shares, abs=1e-5)


def test_a_blank_beyond_what_the_model_reads_has_no_words(listener: Listener) -> None:
    text = "[MASK] " + "a " * 80 + "[MASK]"
    (filled,) = answer_of(listener, "/v1/fill-mask", messages.FillMaskAnswer, text=text)["results"]
    assert [len(blank["words"]) for blank in filled["blanks"]] == [5, 0]


def test_alternatives_are_those_of_the_text_with_a_blank(listener: Listener, models: dict[str, Served]) -> None:
    texts = ["Az árvíztűrő [MASK] Győrben, a Duna.", ""]
    both = answer_of(listener, "/v1/alternatives", messages.AlternativesAnswer, text=texts, top=4)["results"]
    assert both[1]["words"] == []
    words = both[0]["words"]
    assert [word["word"] for word in words] == ["Az", "árvíztűrő", "Győrben", "a", "Duna"]
    vocabulary = models["masked"].encoder.tokenizer.vocabulary
    for word in words:
        assert texts[0][word["begin"] : word["end"]] == word["word"]
        blanked = f"{texts[0][: word['begin']]}[MASK]{texts[0][word['end'] :]}"
        (filled,) = answer_of(listener, "/v1/fill-mask", messages.FillMaskAnswer, text=blanked, top=100)["results"]
        blank = next(each for each in filled["blanks"] if each["begin"] == word["begin"])
        shares = {each["word"]: each["probability"] for each in blank["words"]}
        assert [each["word"] for each in word["alternatives"]] == list(shares)[:4]
        assert ("probability" in word) == (len(word["pieces"]) == 1)
        if word["word"] in vocabulary:
            assert word["probability"] == pytest.approx(shares.get(word["word"], word["probability"]), abs=1e-6)


def test_tokens_have_their_places_in_the_text(listener: Listener, models: dict[str, Served]) -> None:
    text = "A\u0301rvíztűrő 😀 [MASK] Budapest"
    (found,) = answer_of(listener, "/v1/tokenize", messages.TokenizeAnswer, text=text)["results"]
    flat, _ = models["masked"].encoder.tokenizer.encode_texts([text])
    assert [token["id"] for token in found["tokens"]] == flat.tolist()
    pieces = {token["piece"]: text[token["begin"] : token["end"]] for token in found["tokens"]}
    assert pieces["[MASK]"] == "[MASK]" and pieces["Á"] == "A\u0301"
    assert text[found["tokens"][-1]["begin"] : found["tokens"][-1]["end"]] in "Budapest"


def test_vectors_are_the_means_of_hidden_states(listener: Listener, folders: dict[str, Path]) -> None:
    texts = ["A folyó a Duna.", "", "An old mill stands by the river " * 20]
    vectors = answer_of(listener, "/v1/encode", messages.EncodeAnswer, text=texts)["vectors"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["masked"])
    theirs = transformers.AutoModel.from_pretrained(folders["masked"])
    for text, vector in zip(texts, vectors, strict=True):
        with torch.no_grad():
            given = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
            assert vector == pytest.approx(theirs(**given).last_hidden_state[0].mean(0).tolist(), abs=1e-5)


def test_embeddings_are_as_openai_gives_them(listener: Listener, models: dict[str, Served]) -> None:
    def embed(**body: Any) -> Any:
        return answer_of(listener, "/v1/embeddings", messages.EmbeddingsAnswer, model="bare", **body)

    texts, tokenizer = ["A folyó a Duna.", "An old mill"], models["bare"].encoder.tokenizer
    plain = embed(input=texts)
    assert plain["object"] == "list" and plain["model"] == "bare"
    assert [(row["object"], row["index"]) for row in plain["data"]] == [("embedding", 0), ("embedding", 1)]
    expected = models["bare"].encoder.encode(texts)
    assert np.allclose([row["embedding"] for row in plain["data"]], expected, atol=1e-6)
    ids = [tokenizer.encode_texts([text])[0].tolist() for text in texts]
    assert plain["usage"] == {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))}
    assert np.allclose([row["embedding"] for row in embed(input=ids)["data"]], expected, atol=1e-6)
    assert np.allclose(embed(input=ids[0])["data"][0]["embedding"], expected[0], atol=1e-6)
    (row,) = embed(input=texts[0], encoding_format="base64", user="me")["data"]
    assert np.allclose(np.frombuffer(base64.b64decode(row["embedding"]), "<f4"), expected[0], atol=1e-6)
    cut = np.array(embed(input=texts[0], dimensions=8)["data"][0]["embedding"])
    assert np.allclose(cut, expected[0, :8] / np.linalg.norm(expected[0, :8]), atol=1e-6)


def test_similar_texts_and_neighbours_have_the_largest_cosines(listener: Listener, models: dict[str, Served]) -> None:
    texts = ["A főváros Budapest.", "An old mill", "A folyó a Duna!"]
    body = {"query": "A folyó a Duna.", "texts": texts, "top": 2}
    results = answer_of(listener, "/v1/similar", messages.SimilarAnswer, **body)["results"]
    vectors = models["masked"].encoder.encode(["A folyó a Duna.", *texts]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors[1:] @ vectors[0]
    order = np.argsort(-cosines)[:2].tolist()
    assert [(row["index"], row["text"]) for row in results] == [(i, texts[i]) for i in order]
    assert [row["score"] for row in results] == pytest.approx(cosines[order].tolist(), abs=1e-5)

    vocabulary = models["masked"].encoder.tokenizer.vocabulary
    word = next(entry for entry in vocabulary if entry.isalpha() and len(entry) > 3)
    results = answer_of(listener, "/v1/neighbours", messages.NeighboursAnswer, word=word, top=4)["results"]
    rows = models["masked"].encoder.model.encoder.token_weight.detach().double().numpy()
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosines = rows @ rows[vocabulary.index(word)]
    best = [vocabulary[i] for i in np.argsort(-cosines) if vocabulary[i] != word and i > 4][:4]
    assert [row["word"] for row in results] == best


ASKED = [
    ("classifier", "classify", {"text": ["A Duna.", "old"]}, ["A Duna.", "old"]),
    ("classifier", "classify", {"text": "A Duna.", "pair": "old"}, [("A Duna.", "old")]),
    ("several", "classify", {"text": "A Duna."}, ["A Duna."]),
    ("tagger", "tag", {"text": "A Duna  Győrben"}, [["A", "Duna", "Győrben"]]),
    ("tagger", "tag", {"words": ["A", "Duna"]}, [["A", "Duna"]]),
    ("tagger", "tag", {"words": [["A", "Duna"], ["old"]]}, [["A", "Duna"], ["old"]]),
    ("answerer", "answer", {"question": "Mi?", "context": "A folyó a Duna."}, [("Mi?", "A folyó a Duna.")]),
    ("chooser", "choose", {"text": "A", "choices": ["x", "y"]}, [("A", ["x", "y"], ["x", "y"])]),
]


@each_row(("name", "task", "body", "questions"), ASKED)
def test_heads_answer_as_predict_does(
    listener: Listener, models: dict[str, Served], name: str, task: str, body: dict[str, Any], questions: list[Any]
) -> None:
    results = answer_of(listener, f"/v1/{task}", messages.DetailsAnswer, model=name, **body)["results"]
    answerer = models[name].answerer
    assert answerer is not None
    for got, expected in zip(results, answerer.answer(questions), strict=True):
        assert got.keys() == expected.details.keys()
        for key, value in expected.details.items():
            numbers = isinstance(value, float | list) and all(isinstance(each, float) for each in np.atleast_1d(value))
            assert got[key] == (pytest.approx(value, abs=1e-5) if numbers or isinstance(value, dict) else value), key


def test_a_question_longer_than_the_model_is_cut(listener: Listener) -> None:
    body = {"question": "Duna? " * 200, "context": "A folyó a Duna. " * 30}
    (found,) = answer_of(listener, "/v1/answer", messages.DetailsAnswer, **body)["results"]
    assert found["answer"] == body["context"][found["begin"] : found["end"]] != ""


def test_models_are_listed_with_what_they_do(listener: Listener) -> None:
    listed = answer_of_models(listener)
    assert [row["id"] for row in listed] == [
        "masked", "bare", "classifier", "several", "tagger", "answerer", "chooser",
    ]  # fmt: skip
    assert [row["tasks"][0] for row in listed] == [
        "fill-mask", "encode", "classify", "classify", "tag", "answer", "choose",
    ]  # fmt: skip
    assert listed[2]["labels"] == ["ja", "nem", "talán"] and listed[0]["positions"] == 64


def answer_of_models(listener: Listener) -> Any:
    answered = ask(listener, "/v1/models")
    TypeAdapter(messages.Models).validate_json(answered.body)
    return answered.json["data"]


def test_requests_that_share_a_pass_get_their_own_answers(listener: Listener, models: dict[str, Served]) -> None:
    texts = [f"{'A folyó ' * (number % 9)}[MASK] {'a Duna ' * (number % 5)}." for number in range(60)]
    alone = models["masked"].encoder.fill_masks(texts, 3)

    def of(text: str) -> Any:
        return answer_of(listener, "/v1/fill-mask", messages.FillMaskAnswer, text=text, top=3)["results"][0]

    with ThreadPoolExecutor(20) as threads:
        for found, expected in zip(threads.map(of, texts), alone, strict=True):
            words = found["blanks"][0]["words"]
            assert [word["word"] for word in words] == [word for word, _ in expected[0]]
            assert [word["probability"] for word in words] == pytest.approx([p for _, p in expected[0]], abs=1e-5)
