"""Starts Megatron-LM's own entry point under the launcher's torchrun: sizes and paths are Megatron's flags and are handed on as they are.

Megatron-LM (or Megatron-DeepSpeed) lies in the code folder or at MEGATRON_PATH; MEGATRON_ENTRY_POINT names its script. Only --save and
--load are added, from the run's checkpoint folder; Megatron writes to folders, so checkpoints.mode is fsx or managed.
"""

import os
import runpy
import sys
from pathlib import Path


def checkpoint_flags(given, folder):
    """--save and --load of the run's folder; what the run file says itself stays."""
    if folder.startswith("s3://"):
        raise SystemExit("checkpoints.mode: must be fsx or managed for Megatron, got direct; Megatron writes to a folder")
    wanted = {"--save": folder, "--load": folder} if folder else {}
    return [word for flag, value in wanted.items() if flag not in given for word in (flag, value)]


def main():
    home = Path(os.environ.get("MEGATRON_PATH", Path(__file__).parent / "Megatron-LM"))
    script = home / os.environ.get("MEGATRON_ENTRY_POINT", "pretrain_gpt.py")
    if not script.is_file():
        raise SystemExit(f"MEGATRON_PATH: must be a folder with {script.name}, got {home}; put Megatron-LM into code.source or the image")
    given = sys.argv[1:]
    sys.argv = [str(script), *given, *checkpoint_flags(given, os.environ.get("SLIPWAY_CHECKPOINT_URI", ""))]
    # As `python script` would: Megatron imports its own packages from its folder.
    sys.path.insert(0, str(home))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
