"""A training script of three steps, in the progress format that Slipway reads."""

import json

for step in (1, 2, 3):
    print("slipway " + json.dumps({"event": "step", "step": step, "loss": 1 / step}), flush=True)
