"""Token ids to text, for people to read. No PyTorch here."""

from collections.abc import Callable, Sequence
from pathlib import Path

from slipway_trainer.exits import Settings

#: `text(ids)`; None = nothing here knows the tokens of the data.
Detokenizer = Callable[[Sequence[int]], str] | None
OPTION = "--sample-tokenizer"
#: Tokens of the byte tokenizer that are bytes; those above are special ones.
_BYTES = 256


def find_detokenizer(asked: str, of_data: str | None, weights: Path | None) -> Detokenizer:
    """The one that a run names: `byte`, or the path of a tokenizer.json. Where it names none, the byte tokenizer for data made by it, else
    tokenizer.json beside the starting weights, if there is one and the image can read it.

    `of_data`: the tokenizer's name in the index of the shards. Raises Settings for one that is named and cannot be read.
    """
    if asked == "byte" or (not asked and of_data == "byte"):
        return _bytes_as_text
    if asked:
        return _from_file(Path(asked))
    beside = weights / "tokenizer.json" if weights is not None else None
    if beside is None or not beside.is_file():
        return None
    try:
        return _from_file(beside)
    except Settings:
        return None


def _bytes_as_text(ids: Sequence[int]) -> str:
    return bytes(one for one in ids if one < _BYTES).decode("utf-8", "replace")


def _from_file(path: Path) -> Detokenizer:
    if not path.is_file():
        raise Settings([f"{OPTION}: must be `byte` or a tokenizer.json in a channel, got {path}; add the channel that has it to data"])
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        issue = f"{OPTION}: must go with an image that has the `tokenizers` package, got {path} in one without; set image.uri"
        raise Settings([issue]) from error
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # The package raises Exception itself.
        raise Settings([f"{OPTION}: must be a tokenizer.json that the image's `tokenizers` package reads, got {path} ({error})"]) from error
    return lambda ids: loaded.decode(list(ids), skip_special_tokens=True)
