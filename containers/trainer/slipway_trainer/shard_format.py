"""What the tokenise step writes and the trainer reads. No PyTorch here: data is prepared on hosts that need none.

A folder holds `*.bin` files (little-endian uint16 or uint32 token ids, nothing else) and one or more `index*.json`, each listing
shards with their token counts and digests; several hosts of a tokenise job write one index each.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway_trainer.exits import DataFailed

SCHEMA = 1
#: Bytes of a token by the index's `dtype`.
WIDTHS = {"uint16": 2, "uint32": 4}


@dataclass(frozen=True)
class Shard:
    path: Path
    tokens: int


@dataclass(frozen=True)
class ShardIndex:
    """All shards of a folder in the order of their names."""

    shards: tuple[Shard, ...]
    dtype: str
    vocabulary_size: int
    #: Of names, sizes and, where the index has them, digests of all shards: another data set has another one.
    digest: str


def read_index(folder: Path) -> ShardIndex:
    """The merged index of a folder. Raises DataFailed when shards are missing, cut short or do not fit together."""
    files = sorted(folder.glob("index*.json"))
    if not files:
        raise DataFailed(f"{folder}: must hold index*.json and the shards it lists, got {_some_names(folder)}")
    shards: dict[str, int] = {}
    digests: dict[str, str] = {}
    kinds: set[tuple[str, int]] = set()
    for file in files:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise DataFailed(f"{file}: schema must be {SCHEMA}, got {content['schema']}")
            kinds.add((content["dtype"], int(content["vocabularySize"])))
            shards.update({str(entry["name"]): int(entry["tokens"]) for entry in content["shards"]})
            digests.update({str(entry["name"]): str(entry.get("sha256", "")) for entry in content["shards"]})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataFailed(f"{file}: must be an index of token shards ({error!r})") from error
    if len(kinds) != 1:
        raise DataFailed(f"{folder}: all indexes must have one dtype and vocabulary, got {sorted(kinds)}")
    dtype, vocabulary_size = kinds.pop()
    if dtype not in WIDTHS:
        raise DataFailed(f"{folder}: dtype must be one of {', '.join(WIDTHS)}, got {dtype}")
    found = tuple(Shard(folder / name, shards[name]) for name in sorted(shards))
    _check_sizes(found, WIDTHS[dtype])
    listed = [dtype, *([name, shards[name], digests[name]] for name in sorted(shards))]
    return ShardIndex(found, dtype, vocabulary_size, hashlib.sha256(json.dumps(listed).encode()).hexdigest())


def _some_names(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())[:5] if folder.is_dir() else []
    return ", ".join(names) or "nothing"


def _check_sizes(shards: Sequence[Shard], width: int) -> None:
    bad = [shard.path.name for shard in shards if not shard.path.is_file() or shard.path.stat().st_size != shard.tokens * width]
    if bad:
        raise DataFailed(
            f"{len(bad)} of {len(shards)} shards are missing or have another size than the index says ({', '.join(bad[:3])}); "
            "every host needs all of them: s3DataDistribution FullyReplicated"
        )
