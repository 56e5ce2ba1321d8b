"""The OpenAPI document says what the server does: schemathesis calls it in as many ways as it finds, and compares."""

import re

import pytest
from tests.served import ask

from bertwright.page.server import Listener

schemathesis = pytest.importorskip("schemathesis")


BEYOND_SCHEMAS = re.compile(
    r"not as many (pairs|contexts)|either text or words|dimensions: the vectors|ids of tokens are below|no letters"
)
"""What a valid request may still be refused for, because JSON Schema has no words for it."""


@pytest.mark.parametrize("examples", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_answers_are_as_the_document_says(listener: Listener, examples: int) -> None:
    document = ask(listener, "/openapi.json", authorization="").json
    assert document["openapi"] == "3.1.0" and len(document["paths"]) == 14
    call_all(document, listener, examples)


def call_all(document: object, listener: Listener, examples: int) -> None:
    """Call each operation with so many examples, right and wrong ones."""
    from hypothesis import HealthCheck, given, settings
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_dict(document)
    schema.config.base_url = f"http://127.0.0.1:{listener.port}"
    headers = {"Authorization": f"Bearer {listener.token}"}
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=examples, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def check(case: object) -> None:
            answer = case.call(headers=headers)
            positive = case.meta is None or case.meta.generation.mode == GenerationMode.POSITIVE
            said = answer.json()["error"]["message"] if answer.status_code == 422 else ""
            excluded = [positive_data_acceptance] if positive and BEYOND_SCHEMAS.search(said) else []
            case.validate_response(answer, excluded_checks=excluded)

        check()
