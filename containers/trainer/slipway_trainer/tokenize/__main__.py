"""`python -m slipway_trainer.tokenize`: turns the text of an input into token shards."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from slipway_trainer import progress
from slipway_trainer.checkpoint.store import open_store
from slipway_trainer.exits import TrainerError, complain
from slipway_trainer.tokenize.documents import documents, input_files, share
from slipway_trainer.tokenize.place import Place, find_place
from slipway_trainer.tokenize.shard_writer import ShardWriter, fingerprint, new_index, usable
from slipway_trainer.tokenize.tokenizers import load_tokenizer


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="slipway_trainer.tokenize", description=__doc__, allow_abbrev=False)
    parser.add_argument("--tokenizer", default="byte", help="`byte`, or the path of a tokenizer.json")
    parser.add_argument("--end-of-text", default="</s>", help="with a tokenizer.json: the token that ends a document")
    parser.add_argument("--shard-tokens", type=int, default=100_000_000)
    parser.add_argument("--text-key", default="text", help="the field of a .jsonl line that holds the text")
    parser.add_argument("--data-channel", default="", help="input with the text; default: the only one there is")
    return parser.parse_args(words)


def earlier_index(place: Place, path: Path) -> dict[str, Any] | None:
    """The index that an earlier start of this host left: beside the output, or where the service copied it."""
    try:
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        if place.output_uri:
            store = open_store(place.output_uri)
            if store.size(path.name) is not None:
                return json.loads(store.read(path.name))
    except Exception as error:  # No access, no credentials, a torn file: then the work is done again.
        print(f"an earlier index could not be read, starting over: {error}", flush=True)
    return None


def run(words: list[str], base: Path) -> int:
    asked = arguments(words)
    place = find_place(base, asked.data_channel, os.environ)
    tokenizer = load_tokenizer(asked.tokenizer, asked.end_of_text)
    files = input_files(place.input)
    if not place.sharded:
        files = share(files, place.host, place.hosts)
    print_of_input = fingerprint(files, place.input, tokenizer, asked.shard_tokens)
    index = new_index(tokenizer, print_of_input)
    writer = ShardWriter(place.output, place.host, index, asked.shard_tokens)
    found = earlier_index(place, writer.index_path)
    if found is not None and usable(found, print_of_input):
        writer.index = found
        print(f"continuing after {len(found['shards'])} finished shards", flush=True)
    if not writer.index["complete"]:
        first = tuple(writer.index["next"])
        writer.write_all(documents(files, (first[0], first[1]), asked.text_key), tokenizer)
    shards = writer.index["shards"]
    progress.say("tokens", files=len(files), shards=len(shards), tokens=sum(shard["tokens"] for shard in shards))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:], Path(os.environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")))
    except TrainerError as error:
        sys.exit(complain(error))
