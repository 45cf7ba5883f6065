"""`python -m slipway_trainer.tokenize`: turns the text of an input into token shards."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from slipway_trainer import progress
from slipway_trainer.checkpoint.store import open_store
from slipway_trainer.exits import Settings, TrainerError, complain
from slipway_trainer.tokenize.arguments import read_arguments
from slipway_trainer.tokenize.chat_template import ChatTemplate
from slipway_trainer.tokenize.documents import documents, examples, input_files, kind_of, share
from slipway_trainer.tokenize.examples import ExampleReader
from slipway_trainer.tokenize.place import Place, find_place
from slipway_trainer.tokenize.shard_writer import ShardWriter, fingerprint, new_index, usable
from slipway_trainer.tokenize.tokenizers import Tokenizer, load_tokenizer

#: Changes with the tokens and masks that lines become, so that shards of an earlier version are not continued.
_READING = 2


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
    asked = read_arguments(words)
    place = find_place(base, asked.data_channel, os.environ)
    tokenizer = load_tokenizer(asked.tokenizer, asked.end_of_text)
    files = input_files(place.input)
    if not place.sharded:
        files = share(files, place.host, place.hosts)
    kind = "text" if asked.text_key else kind_of(files)
    template = chat_template(asked.chat_template, tokenizer) if kind != "text" else None
    tool_template = tool_template_of(asked.chat_template, tokenizer) if kind != "text" else None
    ignored = [key.strip() for key in asked.ignore_keys.split(",") if key.strip()]
    made_with = [] if kind == "text" else [kind, asked.train_on, template.source if template is not None else "", _READING, *ignored]
    made_with += [tool_template.source] if tool_template is not None else []
    print_of_input = fingerprint(files, place.input, tokenizer, asked.shard_tokens, *made_with)
    index = new_index(tokenizer, print_of_input, kind)
    writer = ShardWriter(place.output, place.host, index, asked.shard_tokens)
    found = earlier_index(place, writer.index_path)
    if found is not None and usable(found, print_of_input):
        writer.index = found
        print(f"continuing after {len(found['shards'])} finished shards", flush=True)
    if not writer.index["complete"]:
        first = tuple(writer.index["next"])
        if kind == "text":
            writer.write_all(documents(files, (first[0], first[1]), asked.text_key or "text"), tokenizer)
        else:
            reader = ExampleReader(kind, tokenizer, (template, tool_template), trains_all=asked.train_on == "all", ignored=ignored)
            writer.write_examples(examples(files, (first[0], first[1]), reader))
            for note in reader.notes:
                print(f"note: {note}", flush=True)
    _say(len(files), writer.index["shards"])
    return 0


def _say(files: int, shards: list[dict[str, Any]]) -> None:
    totals = {name: sum(shard[name] for shard in shards) for name in ("tokens", "documents", "targets") if all(name in s for s in shards)}
    progress.say("tokens", files=files, shards=len(shards), **totals)


def chat_template(asked: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The requested template (its text or path), or the tokenizer's own. Raises Settings if the file does not exist."""
    source = asked or tokenizer.chat_template
    if asked and "{%" not in asked and "{{" not in asked:
        if not Path(asked).is_file():
            raise Settings(
                [
                    f"tokenizer.chatTemplate: must be a Jinja template, or the path of one in an input of the job, got {asked}; "
                    "add the file to an input, or write the template"
                ]
            )
        source = Path(asked).read_text(encoding="utf-8")
    return ChatTemplate(source, tokenizer.special_tokens) if source else None


def tool_template_of(asked: str, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The tokenizer's template for conversations with tools; None if it has none, or if another template is requested."""
    return ChatTemplate(tokenizer.tool_template, tokenizer.special_tokens) if tokenizer.tool_template and not asked else None


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:], Path(os.environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")))
    except TrainerError as error:
        sys.exit(complain(error))
