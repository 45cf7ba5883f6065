"""Prints the SM_* variables that AWS's own code computes from folder trees, one line each. Runs under a Python that has the packages:

python toolkit_reference.py toolkit BASE_FOLDER...        # sagemaker-training
python toolkit_reference.py sdk:FOLDER BASE_FOLDER...     # sagemaker-train (SDK v3), unpacked wheel in FOLDER
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("resourceconfig", "inputdataconfig", "hyperparameters")


def read(base: Path) -> list[dict[str, Any]]:
    return [json.loads((base / f"input/config/{name}.json").read_text()) for name in NAMES]


def toolkit(first: str) -> Callable[[Path], dict[str, str]]:
    # Its folders are constants of the module: each base takes the place of the first.
    place = Path(first).parent / "place"
    place.symlink_to(first)
    os.environ["SAGEMAKER_BASE_DIR"] = str(place)
    from sagemaker_training import environment

    def ask(base: Path) -> dict[str, str]:
        place.unlink()
        place.symlink_to(base)
        found = environment.Environment().to_env_vars()
        return {name: str(value).replace(str(place), str(base)) for name, value in found.items()}

    return ask


def sdk(folder: str) -> Callable[[Path], dict[str, str]]:
    sys.path.insert(0, folder + "/sagemaker/train/container_drivers/scripts")
    import environment

    def ask(base: Path) -> dict[str, str]:
        resources, channels, hyperparameters = read(base)
        told: dict[str, Any] = {}
        # What it would export, before its own quoting: that breaks on a quote or a line break in a value.
        environment.log_env_variables = lambda env_vars_dict: told.update(env_vars_dict)
        environment.set_env(resources, channels, hyperparameters, output_file=os.devnull)
        return {name: environment.safe_serialize(value) for name, value in told.items()}

    return ask


if __name__ == "__main__":
    package, *bases = sys.argv[1:]
    answer = toolkit(bases[0]) if package == "toolkit" else sdk(package.partition(":")[2])
    for one in bases:
        print("REFERENCE " + json.dumps(answer(Path(one))))
