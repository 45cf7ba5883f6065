"""Writes shards and their index, so that a restart continues after the last complete shard."""

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway_trainer.shard_format import DOCUMENTS, HOST_INDEX, MASK, SCHEMAS
from slipway_trainer.tokenize.documents import Document, Examples
from slipway_trainer.tokenize.tokenizers import Tokenizer


def fingerprint(files: Sequence[Path], folder: Path, tokenizer: Tokenizer, shard_tokens: int, *others: Any) -> str:
    """Digest of everything that determines the shards, with the content of all files; an index with another fingerprint is not continued.
    `others`: further options. A step reads a file hundreds of times faster than it tokenizes it, and times differ between its copies."""
    listed = [[path.relative_to(folder).as_posix(), path.stat().st_size] for path in files]
    own = [tokenizer.name, tokenizer.end_of_text, [path.stat().st_size for path in tokenizer.files]]
    digest = hashlib.sha256(json.dumps([own, shard_tokens, listed, *others]).encode())
    for path in (*tokenizer.files, *files):
        with path.open("rb") as handle:
            while chunk := handle.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def new_index(
    tokenizer: Tokenizer, print_of_input: str, kind: str = "text", end_of_turn: int | None = None, hosts: int = 1
) -> dict[str, Any]:
    """The index before the first shard. `kind`: `text`, `sft` or `dpo`; `end_of_turn`: the token that ends what is trained."""
    return {
        "schema": SCHEMAS[kind],
        **({"kind": kind} if kind != "text" else {}),
        "tokenizer": tokenizer.name,
        "dtype": "uint16" if tokenizer.vocabulary_size <= 1 << 16 else "uint32",
        "vocabularySize": tokenizer.vocabulary_size,
        "endOfText": tokenizer.end_of_text,
        **({"endOfTurn": end_of_turn} if end_of_turn is not None else {}),
        "fingerprint": print_of_input,
        "hosts": hosts,
        "shards": [],
        "next": [0, 0],
        "complete": False,
    }


def usable(index: Mapping[str, Any] | None, print_of_input: str) -> bool:
    """Whether an existing index belongs to the same input and options."""
    return index is not None and index.get("schema") in SCHEMAS.values() and index.get("fingerprint") == print_of_input


class ShardWriter:
    """Writes shards of at least `shard_tokens` tokens; a shard ends at the end of a document."""

    def __init__(self, output: Path, host: int, index: dict[str, Any], shard_tokens: int) -> None:
        self._output, self._host, self._limit = output, host, shard_tokens
        self.index = index
        self._type = "H" if index["dtype"] == "uint16" else "I"
        self._tokens = array(self._type)
        #: For examples: one byte per token, and two numbers per document.
        self._mask, self._documents = bytearray(), array("I")

    @property
    def index_path(self) -> Path:
        """Path of this host's index."""
        return self._output / HOST_INDEX.format(self._host)

    def write_all(self, documents: Iterable[Document], tokenizer: Tokenizer) -> None:
        """Tokenizes the remaining documents and marks the index as complete."""

        def add(document: Document) -> None:
            self._tokens.extend(tokenizer.encode(document.text))
            self._tokens.append(tokenizer.end_of_text)

        self._write_rest(documents, add)

    def write_examples(self, lines: Iterable[Examples]) -> None:
        """Writes the remaining examples with masks and boundaries, and marks the index as complete. The examples of a line stay in one
        shard."""

        def add(line: Examples) -> None:
            for tokens, targets in line.examples:
                self._tokens.extend(tokens)
                self._mask += targets
                self._documents.extend((len(tokens), targets.index(1, 1)))

        self._write_rest(lines, add)

    def _write_rest(self, items: Iterable[Any], add: Callable[[Any], None]) -> None:
        place = tuple(self.index["next"])
        # From here on, the index of an earlier step with other input does not count.
        self._write_index()
        for item in items:
            add(item)
            place = (item.file, item.line + 1)
            if len(self._tokens) >= self._limit:
                self._finish_shard(place)
        if self._tokens:
            self._finish_shard(place)
        self.index["complete"] = True
        self._write_index()

    def _finish_shard(self, place: Iterable[int]) -> None:
        name = f"tokens-{self._host:05d}-{len(self.index['shards']):06d}"
        data = self._tokens.tobytes()
        entry = {"name": f"{name}.bin", "tokens": len(self._tokens), "bytes": len(data), "sha256": self._write(f"{name}.bin", data)}
        if self._documents:
            entry |= {"documents": len(self._documents) // 2, "targets": self._mask.count(1)}
            entry |= {"maskSha256": self._write(name + MASK, bytes(self._mask))}
            entry |= {"documentsSha256": self._write(name + DOCUMENTS, self._documents.tobytes())}
        self.index["shards"].append(entry)
        self.index["next"] = list(place)
        self._tokens, self._mask, self._documents = array(self._type), bytearray(), array("I")
        # Written after the shard, so that all listed files exist.
        self._write_index()

    def _write(self, name: str, data: bytes) -> str:
        """Writes one file of a shard; returns its digest."""
        _write_whole(self._output / name, data)
        return hashlib.sha256(data).hexdigest()

    def _write_index(self) -> None:
        _write_whole(self.index_path, json.dumps(self.index, indent=1).encode())


def _write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("." + path.name + ".tmp")
    temporary.write_bytes(data)
    temporary.rename(path)
