"""Data preparation without communication: with s3DataDistribution ShardedByS3Key, every host gets its own part of the keys.

Each text file of channel `raw` becomes one file of unique, stripped lines under SM_OUTPUT_DATA_DIR/<host>/, so that hosts do not overwrite
each other's files. The CPU cores of a host process its files in parallel.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def prepare(source, target):
    """Writes the unique, non-empty lines of `source` in their original order; returns the number of lines read and written."""
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    kept = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
    return len(lines), len(kept)


def main():
    raw = Path(os.environ["SM_CHANNEL_RAW"])
    out = Path(os.environ["SM_OUTPUT_DATA_DIR"]) / os.environ["SM_CURRENT_HOST"]
    sources = sorted(path for path in raw.rglob("*") if path.is_file())
    with ProcessPoolExecutor() as pool:
        counts = list(pool.map(prepare, sources, [out / source.relative_to(raw) for source in sources]))
    print(f"files={len(sources)} lines={sum(read for read, _ in counts)} kept={sum(kept for _, kept in counts)}", flush=True)


if __name__ == "__main__":
    main()
