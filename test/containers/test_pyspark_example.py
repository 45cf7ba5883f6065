"""The PySpark example under a smspark-submit that only says what it was asked: Spark's image is not here."""

import ast
import os
import subprocess
from pathlib import Path

from fake_world import REPOSITORY

EXAMPLE = REPOSITORY / "runs/scripts/pyspark"


def test_submit_hands_the_script_and_its_arguments_over_word_by_word(tmp_path: Path) -> None:
    stub = tmp_path / "smspark-submit"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    environ = {**os.environ, "PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
    command = ["bash", str(EXAMPLE / "submit.sh"), "--input", "file:///a b"]
    done = subprocess.run(command, cwd=str(tmp_path), env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(EXAMPLE / "drop_duplicates.py"), "--input", "file:///a b"]


def test_the_script_is_python() -> None:
    ast.parse((EXAMPLE / "drop_duplicates.py").read_text())
