"""Writes shards and their index so that a restart repeats no finished shard."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway_trainer.shard_format import SCHEMA
from slipway_trainer.tokenize.documents import Document
from slipway_trainer.tokenize.tokenizers import Tokenizer


def fingerprint(files: Sequence[Path], folder: Path, tokenizer: Tokenizer, shard_tokens: int) -> str:
    """What the shards depend on. An index with another fingerprint is not continued."""
    listed = [[path.relative_to(folder).as_posix(), path.stat().st_size] for path in files]
    content = json.dumps([tokenizer.name, tokenizer.vocabulary_size, shard_tokens, listed])
    return hashlib.sha256(content.encode()).hexdigest()


def new_index(tokenizer: Tokenizer, print_of_input: str) -> dict[str, Any]:
    """The index before the first shard."""
    return {
        "schema": SCHEMA,
        "tokenizer": tokenizer.name,
        "dtype": "uint16" if tokenizer.vocabulary_size <= 1 << 16 else "uint32",
        "vocabularySize": tokenizer.vocabulary_size,
        "endOfText": tokenizer.end_of_text,
        "fingerprint": print_of_input,
        "shards": [],
        "next": [0, 0],
        "complete": False,
    }


def usable(index: Mapping[str, Any] | None, print_of_input: str) -> bool:
    """Whether an index found in the output continues this very work."""
    return index is not None and index.get("schema") == SCHEMA and index.get("fingerprint") == print_of_input


class ShardWriter:
    """Fills shards of at least `shard_tokens` tokens; a shard ends with a document."""

    def __init__(self, output: Path, host: int, index: dict[str, Any], shard_tokens: int) -> None:
        self._output, self._host, self._limit = output, host, shard_tokens
        self.index = index
        self._type = "H" if index["dtype"] == "uint16" else "I"
        self._tokens = array(self._type)

    @property
    def index_path(self) -> Path:
        return self._output / f"index-{self._host:05d}.json"

    def write_all(self, documents: Iterable[Document], tokenizer: Tokenizer) -> None:
        """Tokenises everything that is left and marks the index complete."""
        place = tuple(self.index["next"])
        for document in documents:
            self._tokens.extend(tokenizer.encode(document.text))
            self._tokens.append(tokenizer.end_of_text)
            place = (document.file, document.line + 1)
            if len(self._tokens) >= self._limit:
                self._finish_shard(place)
        if self._tokens:
            self._finish_shard(place)
        self.index["complete"] = True
        self._write_index()

    def _finish_shard(self, place: Iterable[int]) -> None:
        name = f"tokens-{self._host:05d}-{len(self.index['shards']):06d}.bin"
        data = self._tokens.tobytes()
        _write_whole(self._output / name, data)
        entry = {"name": name, "tokens": len(self._tokens), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        self.index["shards"].append(entry)
        self.index["next"] = list(place)
        self._tokens = array(self._type)
        # The index after the shard: what it lists is there.
        self._write_index()

    def _write_index(self) -> None:
        _write_whole(self.index_path, json.dumps(self.index, indent=1).encode())


def _write_whole(path: Path, data: bytes) -> None:
    """A file that is either complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("." + path.name + ".tmp")
    temporary.write_bytes(data)
    temporary.rename(path)
