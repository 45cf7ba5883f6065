"""The script that the fault cases train: steps, checkpoints, and a way to go wrong on purpose. Python standard library only."""

import json
import os
import pathlib
import sys
import time

BASE = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
CHECKPOINTS = BASE / "checkpoints"


def newest() -> int:
    """The newest step with a marker; the service restores the prefix before the container starts."""
    steps = [int(marker.parent.name.removeprefix("step-")) for marker in CHECKPOINTS.glob("step-*/DONE")]
    return max(steps, default=0)


def save(step: int) -> None:
    folder = CHECKPOINTS / f"step-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(json.dumps({"step": step}))
    (folder / "DONE").write_text("done")


def stand_still(step: int) -> None:
    """Once, in the first round of the first attempt: a read that never returns, or a long phase that says so."""
    first = os.environ.get("SLIPWAY_ATTEMPT") == "1" and not os.environ.get("SLIPWAY_RESTART")
    if first and step == int(os.environ.get("HANG_AT", "0")):
        time.sleep(3600)
    if first and step == int(os.environ.get("QUIET_AT", "0")):
        print('slipway {"event":"phase","name":"eval","state":"begin","budgetSeconds":60}', flush=True)
        time.sleep(12)
        print('slipway {"event":"phase","name":"eval","state":"end"}', flush=True)


def main() -> None:
    steps = int(os.environ.get("STEPS", "20"))
    seconds = float(os.environ.get("STEP_SECONDS", "0.1"))
    fails = os.environ.get("FAIL_IN_ATTEMPTS", "").split(",")
    fail_at, fail_code = int(os.environ.get("FAIL_AT", "0")), int(os.environ.get("FAIL_CODE", "1"))
    resumed = newest()
    print(f"resumed from step {resumed}", flush=True)
    print(f"clock: {int(time.time())}", flush=True)
    for step in range(resumed + 1, steps + 1):
        time.sleep(seconds)
        stand_still(step)
        print("slipway " + json.dumps({"event": "step", "step": step, "loss": 1.0 / step}, separators=(",", ":")), flush=True)
        if step % 5 == 0:
            save(step)
        if os.environ.get("SLIPWAY_ATTEMPT") in fails and step >= fail_at:
            # The folder is synchronised once a second; what is committed must get there.
            time.sleep(2.5)
            print("RuntimeError: asked to fail", file=sys.stderr, flush=True)
            sys.exit(fail_code)


main()
