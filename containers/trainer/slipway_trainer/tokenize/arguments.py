"""Command line arguments of the tokenise step, set in a run file as `code.arguments`."""

import argparse
from collections.abc import Sequence

from slipway_trainer.exits import Settings
from slipway_trainer.options import OneOf, Options, Text, Whole


def options() -> Options:
    """The options of the tokenise step."""
    found = Options("builtin-tokenize", __doc__)
    add = found.add
    add("tokenizer", Text(), "byte", "`byte`, or the path of a tokenizer.json")
    add(
        "end-of-text",
        Text(),
        None,
        "with a tokenizer.json: the token that ends a document; default: eos_token of tokenizer_config.json next to it, else </s>",
    )
    add("chat-template", Text(), "", "Jinja template, or the path of one; default: the tokenizer's own")
    add("train-on", OneOf(("assistant", "all")), "assistant", "the messages of conversations with a loss")
    add("ignore-keys", Text(), "", "keys of lines and messages to leave out, separated by commas")
    add("preview-rows", Whole(0), 2, "conversations, completions and preferences: rows to show in the log with what is trained; 0 = none")
    add("shard-tokens", Whole(1), 100_000_000)
    add("text-key", Text(), "", "the field with plain text in a .jsonl line; default: text")
    add("data-channel", Text(), "", "input with the text; default: the only input")
    add("include", Text(), "", "patterns of the files of that input to read, separated by commas; default: all")
    return found


def read_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parses the command line. Raises Settings with all errors."""
    issues: list[str] = []
    found = options().read(words, issues)
    if issues:
        raise Settings(*issues)
    return found
