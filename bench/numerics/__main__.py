"""Compares the built-in trainer with transformers on the CPU in float32, and writes docs/numerics.md.

    npm run docs:numerics              # everything, about five minutes on two cores
    npm run -s docs:numerics -- --section logits

Ends with 1 when a difference is larger than allowed.
"""

import argparse
import datetime
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("containers/driver", "containers/trainer", "test/containers")]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch  # noqa: E402
import transformers  # noqa: E402
from one_process import forward, gradients, weights  # noqa: E402
from page import page  # noqa: E402
from row import Row  # noqa: E402

from runs import all_runs  # noqa: E402


def measured(folder: Path, sections: list[str]) -> Iterator[Row]:
    """Rows of the sections that are asked for; all when none is."""
    for name, check in (("logits", forward), ("gradients", gradients), ("import", weights), ("runs", all_runs)):
        if not sections or name in sections:
            yield from check(folder / name)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="numerics", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", default=[], choices=("logits", "gradients", "import", "runs"))
    parser.add_argument("--write", type=Path, help="page that the table is written to; only with all sections")
    options = parser.parse_args(words)
    if options.write and options.section:
        parser.error("--write: must be given without --section, got both; leave one out")
    transformers.utils.logging.disable_progress_bar()
    rows = []
    with tempfile.TemporaryDirectory(prefix="numerics-") as folder:
        for row in measured(Path(folder), options.section):
            rows.append(row)
            figures = ", ".join(f"{name} {figure.measured:.1e} (<= {figure.allowed:.0e})" for name, figure in row.figures.items())
            print(f"{'ok' if row.holds else 'TOO LARGE':<10} {row.section}: {row.name}: {figures}", flush=True)
    if options.write:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__, "Python": platform.python_version()}
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        options.write.write_text(page(rows, today, versions), encoding="utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
