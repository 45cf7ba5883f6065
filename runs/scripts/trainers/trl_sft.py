"""One rank of the SFT script of TRL, which is in the image."""

from runpy import run_module

run_module("trl.scripts.sft", run_name="__main__", alter_sys=True)
