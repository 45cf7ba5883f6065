"""One rank of torchtitan, which is in the image."""

from runpy import run_module

run_module("torchtitan.train", run_name="__main__", alter_sys=True)
