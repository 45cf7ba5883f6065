"""One rank of the trainer as `python -m slipway_trainer` starts it; a script, because zygote.py runs scripts."""

import runpy

runpy.run_module("slipway_trainer", run_name="__main__", alter_sys=True)
