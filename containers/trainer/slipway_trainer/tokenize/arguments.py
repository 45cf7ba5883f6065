"""Command line arguments of the tokenise step, set in a run file as `code.arguments`."""

import argparse
from collections.abc import Sequence

from slipway_trainer.exits import InvalidRun
from slipway_trainer.options import OneOf, Option, Options, Text, Whole

OPTIONS = (
    Option("tokenizer", Text(), "byte", "`byte`, or the path of a tokenizer.json"),
    Option(
        "end-of-text",
        Text(),
        None,
        "with a tokenizer.json: the token that ends a document; default: eos_token of tokenizer_config.json next to it, else </s>",
    ),
    Option("chat-template", Text(), "", "Jinja template, or the path of one; default: the tokenizer's own"),
    Option("train-on", OneOf(("assistant", "all")), "assistant", "the messages of conversations with a loss"),
    Option("ignore-keys", Text(), "", "keys of lines and messages to leave out, separated by commas"),
    Option("preview-rows", Whole(0), 2, "conversations, completions and preferences: rows shown in the log with what is trained; 0 = none"),
    Option("shard-tokens", Whole(1), 100_000_000),
    Option("text-key", Text(), "", "the field with plain text in a .jsonl line; default: text"),
    Option("data-channel", Text(), "", "input with the text; default: the only input"),
    Option("include", Text(), "", "patterns of the files of that input to read, separated by commas; default: all"),
)


def options(*others: Option) -> Options:
    """The options of the tokenise step, and others."""
    return Options("builtin-tokenize", __doc__, (*OPTIONS, *others))


def read_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parses the command line. Raises InvalidRun with all errors."""
    issues: list[str] = []
    found = options().read(words, issues)
    if issues:
        raise InvalidRun(*issues)
    return found
