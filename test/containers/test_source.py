"""Promises about the sources themselves."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fake_world import REPOSITORY

DRIVER = sorted((REPOSITORY / "containers/driver").rglob("*.py"))
ALL = sorted((REPOSITORY / "containers").rglob("*.py"))
#: Top-level packages that the driver may import: of Python 3.8's standard library, and ours.
STANDARD = {
    "__future__", "codecs", "collections", "concurrent", "contextlib", "copy", "ctypes", "dataclasses", "datetime", "errno", "fcntl",
    "functools", "gc", "hashlib", "hmac", "http", "importlib", "io", "json", "math", "os", "pathlib", "platform", "queue", "random",
    "re", "resource", "secrets", "select", "shlex", "shutil", "signal", "socket", "ssl", "statistics", "subprocess", "sys", "tarfile",
    "tempfile", "threading", "time", "traceback", "types", "typing", "urllib", "xml", "zlib", "slipway_driver", "slipway_s3",
}  # fmt: skip


@pytest.mark.parametrize("path", DRIVER, ids=lambda path: path.name)
def test_the_driver_is_python_3_8_and_imports_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    # Programs of their own, which run only where training would run, and the callbacks of a library for scripts that have it.
    libraries = {"health_rank.py": {"torch"}, "__main__.py": {"ray"}}
    libraries["slipway_helper.py"] = {"torch", "transformers", "lightning", "pytorch_lightning", "slipway_trainer"}
    assert imported - libraries.get(path.name, set()) <= STANDARD


#: Modules that take longer to import than the driver, and that most hosts need later or never.
LATER = {"concurrent.futures", "email", "http.client", "importlib.metadata", "ssl", "statistics", "urllib.request", "xml"}


@pytest.mark.parametrize(
    ("module", "later"),
    [("slipway_driver.main", LATER), ("slipway_driver.rank", {*LATER, "dataclasses", "slipway_driver.progress_formats"})],
)
def test_a_process_starts_without_modules_that_it_needs_later_or_never(module: str, later: "set[str]") -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    started = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": f"{REPOSITORY}/containers/driver"}, capture_output=True)
    imported = set(started.stdout.decode().split())
    assert module in imported and later.isdisjoint(imported), started.stderr


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_files_and_functions_stay_short_and_documented(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 300
    assert ast.get_docstring(tree) or path.name == "__main__.py"
    long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert long == []
