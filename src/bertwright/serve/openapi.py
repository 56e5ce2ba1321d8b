"""The OpenAPI document of the server, made of the types that validate its requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from bertwright.core import __version__
from bertwright.serve.messages import Models, Refused
from bertwright.serve.operations import Operation

_PLACE = "#/components/schemas/{model}"
_REFUSALS = {
    400: "The request is no JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such model, or it cannot do that.",
    408: "The body of the request did not arrive in time.",
    413: "The body of the request is too large.",
    415: "The body of the request is not sent as JSON.",
    422: "A field of the request is wrong.",
    500: "The server failed.",
    503: "Too many requests wait; Retry-After says when to come again.",
    504: "There was no answer in time.",
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document, version 3.1."""
    types: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        *((each.request, "validation", TypeAdapter(each.request)) for each in operations),
        *((each, "serialization", TypeAdapter(each)) for each in {each.answer for each in operations}),
        *((each, "serialization", TypeAdapter(each)) for each in (Models, Refused)),
    ]
    places, schemas = TypeAdapter.json_schemas(types, ref_template=_PLACE)

    def content(of: Any, mode: JsonSchemaMode) -> dict[str, Any]:
        return {"application/json": {"schema": places[of, mode]}}

    refused = content(Refused, "serialization")
    refusals = {str(status): {"description": why, "content": refused} for status, why in _REFUSALS.items()}
    plain = {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}
    paths: dict[str, Any] = {
        each.path: {
            "post": {
                "operationId": each.path.rpartition("/")[2],
                "summary": each.summary,
                "requestBody": {"required": True, "content": content(each.request, "validation")},
                "responses": {
                    "200": {"description": "The answer.", "content": content(each.answer, "serialization")},
                    **refusals,
                },
            }
        }
        for each in operations
    }
    models = {"description": "The models.", "content": content(Models, "serialization")}
    healthy = {"description": "It serves.", "content": {"application/json": {"schema": plain}}}
    text = {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    paths |= {
        "/v1/models": {"get": _get("models", "The models and what they do", {"200": models, "401": refusals["401"]})},
        "/metrics": {"get": _get("metrics", "Prometheus metrics", {"200": text, "401": refusals["401"]})},
        "/health": {"get": {**_get("health", "Whether it serves", {"200": healthy}), "security": []}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertwright", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _get(name: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": responses}
