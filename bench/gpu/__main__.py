"""Everything that one GPU can show of the product: `npm run test:gpu`, or `python bench/gpu` where PyTorch is.

    npm run test:gpu -- [--only NAME]... [--write FILE] [--keep FOLDER]

Needs PyTorch's own wheels and nothing else; what a machine cannot have is skipped by name. Prints a table, and ends with 1 when a case
failed. `--keep` leaves the logs of ranks, for fixtures.
"""

import argparse
import datetime
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATHS = ("containers/driver", "containers/trainer", "test/containers", "bench/trainer")
sys.path[:0] = [str(ROOT / folder) for folder in PATHS]

import features  # noqa: E402
import host  # noqa: E402
import host_memory  # noqa: E402
import kernels  # noqa: E402
import layouts  # noqa: E402
import parity  # noqa: E402
import restart  # noqa: E402
import speed  # noqa: E402
import step_loop  # noqa: E402
import two_ranks  # noqa: E402
from case import Outcome, outcome  # noqa: E402
from machine import Machine, this_machine  # noqa: E402

MODULES = (step_loop, host_memory, parity, features, layouts, kernels, host, two_ranks, restart, speed)
CASES = tuple(case for module in MODULES for case in module.CASES)


def page(machine: Machine, outcomes: Sequence[Outcome], date: str) -> str:
    """The table with what it was measured on."""
    where = f"{machine.gpu or 'no GPU'}, PyTorch {machine.torch or 'none'}, NCCL {machine.nccl or 'none'}"
    rows = [f"| {one.name} | {one.must} | {one.state} | {one.text} |" for one in outcomes]
    return "\n".join([f"# GPU suite, {date}", "", where, "", "| case | must | result | measured |", "|---|---|---|---|", *rows, ""])


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="test:gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="part of a case's name; may be given several times")
    parser.add_argument("--write", type=Path, help="page for docs/evidence")
    parser.add_argument("--keep", type=Path, help="folder that the files of all cases stay in")
    options = parser.parse_args(words)
    chosen = [case for case in CASES if not options.only or any(part in case.name for part in options.only)]
    if not chosen:
        names = "; ".join(case.name for case in CASES)
        parser.error(f"--only: must be part of a case's name, got {', '.join(options.only)}; the names are: {names}")
    machine, outcomes = this_machine(), []
    with nullcontext(str(options.keep)) if options.keep else tempfile.TemporaryDirectory(prefix="gpu-") as folder:
        for number, case in enumerate(chosen):
            outcomes.append(outcome(case, machine, Path(folder) / str(number)))
            last = outcomes[-1]
            print(f"{last.state:<9} {last.name}: {last.text}", flush=True)
            text = page(machine, outcomes, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
            if options.write:
                # After each: a machine that is lent may be taken back.
                options.write.write_text(text, encoding="utf-8")
    print("\n" + text)
    return 1 if any(one.state == "failed" for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
