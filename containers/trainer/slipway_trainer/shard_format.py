"""The format of token shards, which tokenization runs write and the trainer reads. Does not import PyTorch, which hosts for data
preparation do not need.

A folder contains `*.bin` files (little-endian uint16 or uint32 token ids without a header) and one or more `index*.json`, which list shards
with their token counts and digests; each host of a tokenization job writes an index.

Shards of post-training data consist of documents: next to `x.bin`, `x.mask` has one byte per token, 1 if it has a loss, and `x.documents`
has two little-endian uint32 per document: its number of tokens, and the index of the first token after token 0 that has a loss. In shards
of preferences, the chosen and the rejected document of each pair are adjacent.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway_trainer.exits import DataFailed

#: Schema of an index by the kind of its shards, so that a trainer without support for masks rejects the second schema.
SCHEMAS = {"text": 1, "sft": 2, "dpo": 2}
#: Suffixes of the additional files of post-training shards.
MASK, DOCUMENTS = ".mask", ".documents"
#: The index of a host of the tokenise step, by its number. It names the number of hosts: in a folder that a step with more hosts has filled
#: before, those of the others do not count.
HOST_INDEX = "index-{:05d}.json"
#: Bytes per token by the index's `dtype`.
WIDTHS = {"uint16": 2, "uint32": 4}


@dataclass(frozen=True)
class Shard:
    """A token file listed in an index."""

    path: Path
    tokens: int
    #: Number of documents; 0 in a shard of text.
    documents: int = 0


@dataclass(frozen=True)
class ShardIndex:
    """All shards of a folder that have tokens, sorted by name."""

    shards: tuple[Shard, ...]
    dtype: str
    vocabulary_size: int
    #: Digest over names, sizes and, if the index has them, digests of all shards; it identifies the data set.
    digest: str
    #: `text`, `sft` or `dpo`.
    kind: str = "text"
    #: The token that ends a document; None if the indexes do not specify it or differ.
    end_of_text: int | None = None
    #: Name of the tokenizer; None if the indexes do not specify it or differ.
    tokenizer: str | None = None
    #: The token that ends what is trained; None if there is none, or if the indexes do not specify it or differ.
    end_of_turn: int | None = None


def read_index(folder: Path) -> ShardIndex:
    """The merged index of a folder. Raises DataFailed if shards are missing, truncated or inconsistent."""
    files = sorted(folder.glob("index*.json"))
    if not files:
        names = sorted(path.name for path in folder.iterdir())[:5] if folder.is_dir() else []
        raise DataFailed(
            f"{folder}: must contain index*.json and the shards it lists, got {', '.join(names) or 'nothing'}; "
            "name the output of a preparation job"
        )
    contents = {file: _parsed(file) for file in files}
    hosts = contents.get(folder / HOST_INDEX.format(0), {}).get("hosts")
    if hosts is not None:
        contents = {file: contents.get(file, {}) for file in (folder / HOST_INDEX.format(number) for number in range(int(hosts)))}
        if other := next((file.name for file, content in contents.items() if content.get("hosts") != hosts), None):
            must = f"must contain the indexes of all {hosts} hosts of one step, got another {other} or none"
            raise DataFailed(f"{folder}: {must}; let the step end, or start it again")
    entries: dict[str, dict[str, Any]] = {}
    kinds: set[tuple[str, int, str]] = set()
    beside: dict[str, set[Any]] = {key: set() for key in ("endOfText", "tokenizer", "endOfTurn")}
    for file, content in contents.items():
        try:
            kind = content.get("kind", "text")
            if content["schema"] != SCHEMAS.get(kind):
                known = " or ".join(map(str, sorted({*SCHEMAS.values()})))
                raise DataFailed(
                    f"{file}: schema must be {known}, got {content['schema']} of kind {kind}; prepare the data with this version of Slipway"
                )
            if content.get("complete") is False:
                raise DataFailed(
                    f"{file}: must be complete, got {len(content['shards'])} shards of a step that has not ended; "
                    "let it end, or start it again: it continues after its last shard"
                )
            # The index of a host without input files may differ from the others.
            if content["shards"] or len(contents) == 1:
                kinds.add((content["dtype"], int(content["vocabularySize"]), kind))
                for key, values in beside.items():
                    values.add(content.get(key))
            entries.update({str(entry["name"]): entry | {"tokens": int(entry["tokens"])} for entry in content["shards"]})
        except (ValueError, KeyError, TypeError) as error:
            raise _no_index(file, error) from error
    if len(kinds) != 1:
        found = ", ".join(map(str, sorted(kinds))) or "no shards"
        raise DataFailed(
            f"{folder}: all indexes must have one dtype, vocabulary and kind of data, got {found}; prepare them again in one job"
        )
    dtype, vocabulary_size, kind = kinds.pop()
    if dtype not in WIDTHS:
        raise DataFailed(f"{folder}: dtype must be one of {', '.join(WIDTHS)}, got {dtype}; prepare the data again")
    listed = [entries[name] for name in sorted(entries)]
    # A shard without tokens adds nothing, and PyTorch makes no tensor of an empty file.
    shards = tuple(Shard(folder / entry["name"], entry["tokens"], int(entry.get("documents", 0))) for entry in listed if entry["tokens"])
    _check_sizes(shards, WIDTHS[dtype])
    return ShardIndex(shards, dtype, vocabulary_size, _digest(dtype, kind, listed), kind, *map(common_value, beside.values()))


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return {**json.loads(file.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError) as error:
        raise _no_index(file, error) from error


def _no_index(file: Path, error: Exception) -> DataFailed:
    return DataFailed(f"{file}: must be an index of token shards ({error!r}); prepare the data again")


def _digest(dtype: str, kind: str, entries: Sequence[Mapping[str, Any]]) -> str:
    digests = ("sha256",) if kind == "text" else ("sha256", "maskSha256", "documentsSha256")
    listed = [dtype, *([entry["name"], entry["tokens"], *(str(entry.get(key, "")) for key in digests)] for entry in entries)]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def common_value(found: set[Any]) -> Any:
    """The one value of a set; None if there are several or none."""
    return found.pop() if len(found) == 1 else None


def _check_sizes(shards: Sequence[Shard], width: int) -> None:
    sizes = {shard.path: shard.tokens * width for shard in shards}
    for shard in shards:
        if shard.documents:
            sizes |= {shard.path.with_suffix(MASK): shard.tokens, shard.path.with_suffix(DOCUMENTS): 8 * shard.documents}
    wrong: dict[str, str] = {}
    for path, size in sizes.items():
        if not path.is_file() or path.stat().st_size != size:
            wrong.setdefault(path.stem, path.name)
    if wrong:
        some = ", ".join([*wrong.values()][:3])
        raise DataFailed(
            f"{len(wrong)} of {len(shards)} shards are missing or have another size than the index says ({some}); "
            "every host needs all of them: s3DataDistribution FullyReplicated"
        )
