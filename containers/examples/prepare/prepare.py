"""Share-nothing data preparation: with s3DataDistribution ShardedByS3Key every host sees its own part of the keys. No communication.

Each text file of channel `raw` becomes one file of unique, stripped lines under SM_OUTPUT_DATA_DIR/<host>/, so that no two hosts write
the same name. The files of a host are shared out to its cores.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def prepare(source, target):
    """Writes the unique, non-empty lines of `source` in their order; returns how many came in and went out."""
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
