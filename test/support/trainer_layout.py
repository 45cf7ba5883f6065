"""What the built-in trainer makes of job files: reads [{"job", "ranks"}] on stdin, writes [{"layout"} or {"issues"}]. Needs no PyTorch."""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "containers" / part) for part in ("trainer", "driver")]

from slipway_trainer.backend_choice import backend_name, compiles
from slipway_trainer.exits import Settings
from slipway_trainer.layout import resolve_layout
from slipway_trainer.settings import resolve_settings


def judged(job: dict, ranks: int) -> dict:
    try:
        settings = resolve_settings(job, job["arguments"], {})
        backend_name(settings, "2.13.0")
        found = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
    except Settings as error:
        return {"issues": str(error)}
    compiled = compiles(settings, "cpu" if settings.collectives == "gloo" else "cuda")
    names = ("shard", "replicate", "tensor", "context", "expert")
    return {"layout": {name: getattr(found, name) for name in names}, "compiles": compiled}


print(json.dumps([judged(case["job"], case["ranks"]) for case in json.load(sys.stdin)]))
