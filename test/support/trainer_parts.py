"""What the built-in trainer says of models: reads [`model` of job.json] on stdin, writes [{"refused", "parts"}]. Needs no PyTorch."""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "containers" / part) for part in ("trainer", "driver")]

from slipway_trainer.architecture import read_architecture


def judged(model: dict) -> dict:
    issues: list[str] = []
    shape = read_architecture(model, lambda key, default=None: model.get(key, default), issues)
    return {"refused": issues, "parts": shape.parts()}


print(json.dumps([judged(model) for model in json.load(sys.stdin)]))
