"""Faults in jobs of this machine, and the time until training goes on, beside the newest release in the same run.

    npm run -s bench:recovery -- [--json] [--only NAME ...] [--trials 20] [--hosts 4] [--seed N] [--no-before]

Hosts are processes with their own folders and addresses, on CPUs; the driver and the trainer are those of a job. A model of four layers of
32 takes steps of 0.25 s and is saved every 40 steps.
"""

import argparse
import io
import json
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("containers/driver", "containers/trainer", "test/containers")]

from timeline import Recovery  # noqa: E402
from trial import Bench  # noqa: E402

#: The commit of the newest release, 0.3.0.
RELEASE = "ff77c0c83ba83c5f10821fe8b349b30d9e759710"
FAULTS = ("rank-killed", "driver-killed", "host-lost", "two-hosts-lost", "new-attempt", "compile-cold", "compile-cached")


def options_of(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench:recovery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=FAULTS, action="append", help="may be given several times")
    parser.add_argument("--trials", type=int, default=20, help="of each fault")
    parser.add_argument("--hosts", type=int, default=4, help="that train")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--no-before", action="store_true", help="without the newest release")
    return parser.parse_args(words)


def release(folder: Path) -> Path:
    """The containers of the newest release, unpacked in a folder."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", RELEASE, "containers"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")
    return folder


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies; of few values, the nearest one above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(fault: str, hosts: int, found: Sequence[Recovery]) -> dict[str, Any]:
    """The figures of one fault. Phases are medians."""
    seconds, lost = [one.seconds for one in found], [one.lost_steps for one in found]
    shown = {name: [one.phases[name] for one in found] for name in found[0].phases}
    return {
        "fault": fault,
        "hosts": hosts,
        "trials": len(found),
        "seconds": {"p50": round(statistics.median(seconds), 2), "p95": round(quantile(seconds, 0.95), 2)},
        "phases": {name: None if None in values else round(statistics.median(values), 2) for name, values in shown.items()},
        "lostSteps": {"p50": statistics.median(lost), "max": max(lost)},
        "source": statistics.mode(one.source for one in found),
    }


def measured(bench: Bench, faults: Sequence[str], hosts: int) -> list[dict[str, Any]]:
    found = []
    for fault in faults:
        found.append(row(fault, hosts, getattr(bench, fault.replace("-", "_"))()))
        print(shown(found[-1]), file=sys.stderr, flush=True)
    return found


def shown(found: dict[str, Any]) -> str:
    phases = ", ".join(f"{name} {seconds}" for name, seconds in found["phases"].items() if seconds is not None)
    seconds, lost = found["seconds"], found["lostSteps"]
    return (
        f"{found['fault']:<16} {found['trials']:>3} x {found['hosts']} hosts: {seconds['p50']:>6} s (95 %: {seconds['p95']} s), "
        f"lost {lost['p50']} steps (most {lost['max']}), from {found['source']}; {phases}"
    )


def main(words: Sequence[str]) -> int:
    from rank_world import write_shards

    options = options_of(words)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    faults = options.only or FAULTS
    print(f"seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shards = write_shards(folder / "shards")
        trees = {"rows": ROOT} if options.no_before else {"before": release(folder / "release"), "rows": ROOT}
        found: dict[str, Any] = {}
        for name, tree in trees.items():
            bench = Bench(folder / name, tree, shards, options.hosts, options.trials, random.Random(seed))
            print("the newest release:" if name == "before" else "this version:", file=sys.stderr)
            found[name] = measured(bench, faults, options.hosts)
        overhead = 100.0 * statistics.fmean(bench.blocked) if bench.blocked else None
    if options.json:
        result = {"rows": found["rows"], "before": found.get("before", []), "overheadPercent": overhead and round(overhead, 3)}
        print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
