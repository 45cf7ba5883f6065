"""What the built-in trainer makes of job files: reads [{"job", "ranks"}] on stdin, writes [{"layout"} or {"issues"}]. Needs no PyTorch."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2] / "containers" / part) for part in ("trainer", "driver")]

from slipway_trainer.exits import InvalidRun
from slipway_trainer.layout import resolve_layout
from slipway_trainer.limits import backend_name, compiles
from slipway_trainer.settings import resolve_settings


def tried(call: Callable[..., Any], *given: Any) -> tuple[Any, list[str]]:
    """What a call returns, and its refusals."""
    try:
        return call(*given), []
    except InvalidRun as error:
        return None, error.issues


def judged(job: dict, ranks: int) -> dict:
    settings, issues = tried(resolve_settings, job, job["arguments"], {})
    if settings is None:
        return {"issues": issues}
    _, issues = tried(backend_name, settings, "2.13.0")
    found, uneven = tried(resolve_layout, settings.parallel, ranks, settings.architecture, settings.training)
    if issues or uneven:
        return {"issues": [*issues, *uneven]}
    compiled = compiles(settings, "cpu" if settings.collectives == "gloo" else "cuda")
    names = ("shard", "replicate", "tensor", "context", "expert")
    return {"layout": {name: getattr(found, name) for name in names}, "compiles": compiled}


print(json.dumps([judged(case["job"], case["ranks"]) for case in json.load(sys.stdin)]))
