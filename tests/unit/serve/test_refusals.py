"""What is wrong is said with a status, as OpenAI's API says it, and named."""

import json
from typing import Any

import pytest
from tests.rows import each_row
from tests.served import ask, served

from bertwright.page.server import Listener
from bertwright.serve.app import Limits, make_app
from bertwright.serve.served import Served

WRONG: list[tuple[str, Any, int, str | None]] = [
    ("/v1/fill-mask", b"{", 400, None),
    ("/v1/fill-mask", b"", 400, None),
    ("/v1/fill-mask", b"\xff\xfe", 400, None),
    ("/v1/fill-mask", b'{"text": "\\ud800 [MASK]"}', 400, None),
    ("/v1/fill-mask", [], 422, None),
    ("/v1/fill-mask", {}, 422, "text"),
    ("/v1/fill-mask", {"text": "no blank"}, 422, "text"),
    ("/v1/fill-mask", {"text": ["[MASK]", "none"]}, 422, "text"),
    ("/v1/fill-mask", {"text": []}, 422, "text"),
    ("/v1/fill-mask", {"text": "[MASK]", "top": 0}, 422, "top"),
    ("/v1/fill-mask", {"text": "[MASK]", "top": "5"}, 422, "top"),
    ("/v1/fill-mask", {"text": "[MASK]", "topp": 5}, 422, "topp"),
    ("/v1/fill-mask", {"text": "[MASK]", "model": "none"}, 404, "model"),
    ("/v1/fill-mask", {"text": "[MASK]", "model": "tagger"}, 404, "model"),
    ("/v1/fill-mask", {"text": ["[MASK]" * 80] * 2048, "top": 100}, 422, "text"),
    ("/v1/alternatives", {"text": "a " * 400}, 422, "text"),
    ("/v1/neighbours", {"word": " "}, 422, "word"),
    ("/v1/neighbours", {"word": "\u00ad"}, 422, "word"),
    ("/v1/classify", {"text": ["a", "b"], "pair": "c", "model": "classifier"}, 422, None),
    ("/v1/tag", {"model": "tagger"}, 422, None),
    ("/v1/tag", {"text": " ", "model": "tagger"}, 422, "text"),
    ("/v1/answer", {"question": "", "context": "x", "model": "answerer"}, 422, "question"),
    ("/v1/choose", {"text": "a", "choices": ["b"], "model": "chooser"}, 422, "choices"),
    ("/v1/embeddings", {"input": ""}, 422, "input"),
    ("/v1/embeddings", {"input": [1, "a"]}, 422, "input"),
    ("/v1/embeddings", {"input": [10**9]}, 422, "input"),
    ("/v1/embeddings", {"input": "a", "dimensions": 10**6}, 422, "dimensions"),
    ("/v1/none", {"text": "a"}, 404, None),
]


@each_row(("path", "body", "status", "param"), WRONG)
def test_a_wrong_request_is_refused_with_what_is_wrong(
    listener: Listener, path: str, body: Any, status: int, param: str | None
) -> None:
    headers = {"content_type": "application/json"}
    refused = ask(listener, path, body, "POST", **headers)
    assert refused.status == status, refused.body
    error = refused.json["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    assert error["param"] == param


def test_statuses_of_http(listener: Listener) -> None:
    missing = ask(listener, "/v1/fill-mask").json["error"]["message"]
    assert missing == "There is nothing to GET at /v1/fill-mask. /openapi.json says what can be asked."
    assert ask(listener, "/v1/fill-mask").status == 405
    assert ask(listener, "/v1/models", b"", "POST").status == 405
    refused = ask(listener, "/v1/fill-mask", b"text=x", content_type="text/plain")
    assert refused.status == 415 and "application/json" in refused.json["error"]["message"]
    assert ask(listener, "/v1/fill-mask", {"text": "[MASK]"}, authorization="").status == 401
    large = json.dumps({"text": "[MASK]" + "a" * 2**20}).encode()
    assert ask(listener, "/v1/fill-mask", large, content_type="application/json").status == 413
    assert ask(listener, "/health", authorization="").json == {"status": "ok"}


def test_an_answer_that_takes_too_long_is_given_up(models: dict[str, Served]) -> None:
    limits = Limits(seconds=0.01)
    body = {"text": ["[MASK] " + "a " * 60] * 300}
    with served(make_app([models["masked"]], limits)) as listener:
        refused = ask(listener, "/v1/fill-mask", body)
        assert refused.status == 504 and "0.01 seconds" in refused.json["error"]["message"]
        assert ask(listener, "/health").status == 200


def test_a_failing_model_fails_its_request_alone(
    models: dict[str, Served], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = models["masked"]
    with served(make_app([model], Limits())) as listener:
        with monkeypatch.context() as patched:
            patched.setattr(model.encoder, "mask_probabilities", None)
            failed = ask(listener, "/v1/fill-mask", {"text": "[MASK]"})
        assert failed.status == 500 and "NoneType" not in failed.body.decode()
        assert ask(listener, "/v1/fill-mask", {"text": "[MASK]"}).status == 200
    assert "NoneType" in caplog.text


def test_metrics_count_requests_and_passes(listener: Listener) -> None:
    assert ask(listener, "/v1/fill-mask", {"text": "[MASK]"}).status == 200
    for path in ("/v1/none", "/etc/passwd", "/x" * 50):
        assert ask(listener, path).status == 404
    text = ask(listener, "/metrics").body.decode()
    assert 'bertwright_requests_total{path="/v1/fill-mask",status="200"}' in text
    assert 'bertwright_requests_total{path="other",status="404"}' in text and "passwd" not in text
    assert "bertwright_pass_seconds_count" in text and "bertwright_waiting_requests 0.0" in text
