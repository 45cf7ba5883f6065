"""Prints the SM_* variables that AWS's own code computes from a folder tree. Runs under a Python that has the packages:

python toolkit_reference.py BASE_FOLDER toolkit        # sagemaker-training
python toolkit_reference.py BASE_FOLDER sdk FOLDER     # sagemaker-train (SDK v3), unpacked wheel in FOLDER
"""

import json
import os
import sys
from pathlib import Path


def toolkit(base: str) -> dict[str, str]:
    os.environ["SAGEMAKER_BASE_DIR"] = base
    from sagemaker_training import environment

    found = environment.Environment()
    # The toolkit itself turns the names into upper case on their way into the process environment; they are so already.
    return {name: str(value) for name, value in found.to_env_vars().items()}


def sdk(base: str, folder: str) -> dict[str, str]:
    sys.path.insert(0, folder + "/sagemaker/train/container_drivers/scripts")
    import environment

    config = Path(base) / "input/config"
    read = lambda name: json.loads((config / name).read_text())  # noqa: E731
    written = Path(base) / "sm_training.env"
    environment.set_env(
        resource_config=read("resourceconfig.json"),
        input_data_config=read("inputdataconfig.json"),
        hyperparameters_config=read("hyperparameters.json"),
        output_file=str(written),
    )
    lines = [line.removeprefix("export ") for line in written.read_text().splitlines() if line.startswith("export ")]
    return {line.partition("=")[0]: line.partition("=")[2].strip("'") for line in lines}


if __name__ == "__main__":
    print("REFERENCE " + json.dumps(toolkit(sys.argv[1]) if sys.argv[2] == "toolkit" else sdk(sys.argv[1], sys.argv[3])))
