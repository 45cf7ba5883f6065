"""Runs Megatron-LM's entry point under the launcher's torchrun. Model sizes and paths are flags of Megatron and are passed on unchanged.

Megatron-LM (or Megatron-DeepSpeed) is in the code folder or at MEGATRON_PATH; MEGATRON_ENTRY_POINT is the name of its script. Only --save
and --load are added, with the run's checkpoint folder. Megatron writes to folders, so checkpoints.mode must be fsx or managed.
"""

import os
import runpy
import sys
from pathlib import Path


def checkpoint_flags(given, folder):
    """--save and --load with the run's folder, unless the run file sets them."""
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
    # As with `python script`: Megatron imports its packages from its own folder.
    sys.path.insert(0, str(home))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
