"""`python -m slipway_trainer.tokenize`: turns the text of an input into token shards."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway_trainer import progress
from slipway_trainer.checkpoint.store import open_store
from slipway_trainer.exits import end_with
from slipway_trainer.tokenize.arguments import read_arguments
from slipway_trainer.tokenize.documents import documents, end_of_turn, examples, input_files, kind_of, share
from slipway_trainer.tokenize.examples import end_note, open_reader
from slipway_trainer.tokenize.place import Place, find_place
from slipway_trainer.tokenize.preview import PAGE, Row, as_page, as_text, first_rows
from slipway_trainer.tokenize.shard_writer import ShardWriter, fingerprint, new_index, usable
from slipway_trainer.tokenize.tokenizers import load_tokenizer


def earlier_index(place: Place, path: Path) -> dict[str, Any] | None:
    """The index of an earlier start on this host: in the output folder, or where the service has copied it; None if there is none."""
    try:
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        if place.output_uri:
            store = open_store(place.output_uri)
            if store.size(path.name) is not None:
                return json.loads(store.read(path.name))
    except Exception as error:  # Missing permissions or credentials, or a corrupt file: start again.
        print(f"an earlier index could not be read, starting over: {error}", flush=True)
    return None


def run(words: list[str], base: Path) -> int:
    """Tokenizes this host's share of the input into shards below `base`; returns the exit code."""
    given = read_arguments(words)
    place = find_place(base, given.data_channel, os.environ)
    tokenizer = load_tokenizer(given.tokenizer, given.end_of_text)
    files = input_files(place.input, given.include)
    if not place.sharded:
        files = share(files, place.host, place.hosts)
    kind = "text" if given.text_key else kind_of(files)
    reader = None if kind == "text" else open_reader(kind, given, tokenizer)
    made_with = reader.made_with if reader else [given.text_key or "text"]
    print_of_input = fingerprint(files, place.input, tokenizer, given.shard_tokens, place.hosts, kind, *made_with)
    turn = end_of_turn(files, open_reader(kind, given, tokenizer), tokenizer) if reader else None
    writer = ShardWriter(place.output, place.host, new_index(tokenizer, print_of_input, kind, turn, place.hosts), given.shard_tokens)
    found = earlier_index(place, writer.index_path)
    if found is not None and usable(found, print_of_input):
        writer.index = found
        print(f"continuing after {len(found['shards'])} finished shards", flush=True)
    elif reader is not None:
        _preview(first_rows(files, open_reader(kind, given, tokenizer), tokenizer, given.preview_rows), place)
    if not writer.index["complete"]:
        first = tuple(writer.index["next"])
        if reader is None:
            writer.write_all(documents(files, (first[0], first[1]), given.text_key or "text"), tokenizer)
        else:
            writer.write_examples(examples(files, (first[0], first[1]), reader))
            notes = [*reader.notes, *filter(None, [end_note(turn, tokenizer)])]
            print("".join(f"note: {note}\n" for note in notes), end="", flush=True)
    _report(len(files), writer.index["shards"])
    return 0


def _preview(rows: Sequence[Row], place: Place) -> None:
    """Shows what is trained in the first rows: in the log, and on a page beside the shards."""
    if rows:
        print(as_text(rows, colours=sys.stdout.isatty()), flush=True)
        place.output.mkdir(parents=True, exist_ok=True)
        (place.output / PAGE.format(place.host)).write_text(as_page(rows), encoding="utf-8")


def _report(files: int, shards: list[dict[str, Any]]) -> None:
    totals = {name: sum(shard[name] for shard in shards) for name in ("tokens", "documents", "targets") if all(name in s for s in shards)}
    progress.emit("tokens", files=files, shards=len(shards), **totals)


if __name__ == "__main__":
    end_with(lambda: run(sys.argv[1:], Path(os.environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")))
