"""A description of all addresses, for programs that make clients of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from driftline.app.service.bodies import (
    ChallengerBody,
    ChampionBody,
    LabelBody,
    LearnBody,
    ModelBody,
    PredictBody,
)
from driftline.typing import Json
from driftline.version import __version__

__all__ = ["openapi"]

#: Address, method, what it does, the body that it takes, and whether a list of these may come.
OPERATIONS: tuple[tuple[str, str, str, Any, bool], ...] = (
    ("/models", "get", "List all models", None, False),
    ("/models", "post", "Make a model, by columns or from rows", ModelBody, False),
    ("/models/{model}", "get", "A model with its learners and curves", None, False),
    ("/models/{model}", "put", "Upload a saved model", bytes, False),
    ("/models/{model}", "delete", "Delete a model", None, False),
    ("/models/{model}/predict", "post", "Predict rows, each by an id", PredictBody, True),
    ("/models/{model}/look", "post", "Predict rows, and keep nothing", PredictBody, True),
    ("/models/{model}/labels", "post", "Tell labels or losses by id", LabelBody, True),
    ("/models/{model}/learn", "post", "Learn from rows with labels", LearnBody, True),
    ("/models/{model}/rows", "post", "Learn from CSV or JSON lines, streamed", bytes, False),
    ("/models/{model}/challengers", "post", "Add a challenger", ChallengerBody, False),
    ("/models/{model}/challengers/{learner}", "delete", "Remove a challenger", None, False),
    ("/models/{model}/champion", "put", "Let another learner answer", ChampionBody, False),
    ("/models/{model}/certificate", "get", "What was paid, and what bounds it", None, False),
    ("/models/{model}/alarms", "get", "When losses rose", None, False),
    ("/models/{model}/weights", "get", "Which columns matter most", None, False),
    ("/models/{model}/file", "get", "The model as a file", None, False),
    ("/models/{model}/log", "get", "The log as CSV, JSON lines or Parquet", None, False),
    ("/events", "get", "The latest numbers, as server-sent events", None, False),
    ("/metrics", "get", "Numbers for Prometheus", None, False),
    ("/health", "get", "Whether the process works", None, False),
    ("/ready", "get", "Whether labels are learned", None, False),
)
ERRORS = {
    "400": "no JSON",
    "401": "no token",
    "403": "a token of another role",
    "404": "unknown model, or id",
    "408": "the body stopped",
    "409": "the id was used with another row or label",
    "410": "the row was forgotten: it is too old",
    "413": "too large",
    "422": "refused: the error says what was seen and what was expected",
    "429": "too many rows wait: see Retry-After",
    "507": "the disk is full",
}


@cache
def openapi() -> Json:
    """Return the description, as OpenAPI 3.1 has it."""
    kinds = [kind for *_, kind, _ in OPERATIONS if kind not in (None, bytes)]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: Json = {}
    for path, method, summary, kind, several in OPERATIONS:
        operation: Json = {
            "summary": summary,
            "operationId": f"{method}{path}".replace("/", "_").replace("{", "").replace("}", ""),
            "responses": {
                "200": {"description": "done"},
                **{status: {"description": why} for status, why in ERRORS.items()},
            },
        }
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        if names:
            operation["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
        if kind is bytes:
            content: Json = {"application/octet-stream": {"schema": {"format": "binary"}}}
            operation["requestBody"] = {"content": content}
        elif kind is not None:
            schema: Json = {"$ref": f"#/components/schemas/{kind.__name__}"}
            if several:
                schema = {"anyOf": [schema, {"type": "array", "items": schema}]}
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Driftline", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }
