"""Puts the stub of `torch.sagemaker` beside the real torch: found when it is imported, loaded from this folder."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "torch_sagemaker"


class TorchSagemakerFinder:
    """Answers for the package alone; its submodules are found through its own path."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> "ModuleSpec | None":
        if name != "torch.sagemaker":
            return None
        return spec_from_file_location(name, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])


sys.meta_path.insert(0, TorchSagemakerFinder)
