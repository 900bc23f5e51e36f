"""River behind Starlette, without a log: what an answer costs that dies with the process."""

from __future__ import annotations

import json
import sys

import uvicorn
from river import compose, linear_model, preprocessing
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
waiting: dict[str, dict[str, float]] = {}


async def predict(request):
    body = json.loads(await request.body())
    waiting[body["id"]] = body["row"]
    chance = model.predict_proba_one(body["row"])
    return Response(json.dumps({"id": body["id"], "probabilities": chance}, default=str))


async def labels(request):
    body = json.loads(await request.body())
    row = waiting.pop(body["id"], None)
    if row is None:
        return Response("{}", 404)
    model.learn_one(row, body["label"] == "a")
    return Response(json.dumps({"id": body["id"], "learned": True}))


app = Starlette(
    routes=[
        Route("/models/m/predict", predict, methods=["POST"]),
        Route("/models/m/labels", labels, methods=["POST"]),
    ]
)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
