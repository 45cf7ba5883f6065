"""Sample generations: prints how the model continues a few prompts from the data during training, for people to read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from slipway_trainer import progress
from slipway_trainer.backend import Backend
from slipway_trainer.batches import Batches, channel_folder
from slipway_trainer.exits import InvalidRun
from slipway_trainer.greedy import continued
from slipway_trainer.loss import IGNORED
from slipway_trainer.settings import RunSettings
from slipway_trainer.world import World

#: `text(ids)`; None = no tokenizer for the data is available.
Detokenizer = Callable[[Sequence[int]], str] | None
OPTION = "code.arguments.sample-tokenizer"
#: Token ids of the byte tokenizer below this are bytes, those above are special tokens.
_BYTES = 256


def find_detokenizer(requested: str, of_data: str | None, weights: Path | None) -> Detokenizer:
    """The requested detokenizer: `byte`, or the path of a tokenizer.json. By default, the byte tokenizer if the data was tokenized with it,
    otherwise tokenizer.json next to the initial weights if it exists and can be read.

    `of_data`: the tokenizer's name in the index of the shards. Raises InvalidRun if a requested tokenizer cannot be read.
    """
    if requested == "byte" or (not requested and of_data == "byte"):
        return _bytes_as_text
    if requested:
        return _from_file(Path(requested))
    beside = weights / "tokenizer.json" if weights is not None else None
    if beside is None or not beside.is_file():
        return None
    try:
        return _from_file(beside)
    except InvalidRun:
        return None


def _bytes_as_text(ids: Sequence[int]) -> str:
    return bytes(one for one in ids if one < _BYTES).decode("utf-8", "replace")


def _from_file(path: Path) -> Detokenizer:
    if not path.is_file():
        raise InvalidRun(f"{OPTION}: must be `byte` or a tokenizer.json in a channel, got {path}; add the channel that has it to data")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        issue = f"{OPTION}: must be used with an image that has the `tokenizers` package, got {path} in one without; set image.uri"
        raise InvalidRun(issue) from error
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # The package raises plain Exception.
        raise InvalidRun(
            f"{OPTION}: must be a tokenizer.json that the image's `tokenizers` package reads, got {path} ({error}); "
            "convert it with the package of the image"
        ) from error
    return lambda ids: loaded.decode(list(ids), skip_special_tokens=True)


#: Number of samples examined per prompt; those with a prompt that is too long, or without a continuation, are skipped.
_CANDIDATES = 16
#: Maximum characters of a text in a progress line; of a prompt, the last ones.
_CHARACTERS = 4000


@dataclass(frozen=True)
class Prompt:
    """The tokens of a prompt, and the tokens that follow it in the data."""

    tokens: list[int]
    expected: list[int]


def read_prompts(batches: Batches, settings: RunSettings) -> list[Prompt]:
    """The prompts of a run, from the first samples of its data, equal on all ranks and at every step. For text, the prompt is the first
    tokens; for conversations, completions and preferences, the tokens before the first one with a loss."""
    arguments, training = settings.arguments, settings.training
    longest = training.sequence_length - arguments.sample_tokens
    found: list[Prompt] = []
    for sample in batches.first_samples(_CANDIDATES * arguments.samples):
        tokens, requested = _beginning(sample, training.objective, arguments.sample_prompt_tokens)
        if 0 < requested <= longest and requested < len(tokens):
            found.append(Prompt(tokens[:requested], tokens[requested : requested + arguments.sample_tokens]))
        if len(found) == arguments.samples:
            break
    return found


def _beginning(sample: Tensor, objective: str, of_text: int) -> tuple[list[int], int]:
    """The first document of a sample (of a preference pair, the chosen one), and the length of its prompt."""
    if objective == "pretrain":
        return sample.tolist(), of_text
    tokens_L, targets_L, documents_L = sample[0] if objective == "dpo" else sample
    here_L = documents_L == documents_L[0]
    targets = (targets_L[here_L] != IGNORED).nonzero().flatten().tolist()
    # The target of a position is the next token; the document ends with the last target.
    return tokens_L[here_L][: targets[-1] + 2 if targets else 0].tolist(), targets[0] + 1 if targets else 0


class Samples:
    """The sample generations of a run on one rank."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, batches: Batches, weights: Path | None) -> None:
        """Raises InvalidRun if the tokenizer cannot be read."""
        self._settings, self._world, self._backend = settings, world, backend
        self._prompts = read_prompts(batches, settings)
        self._text = find_detokenizer(settings.arguments.sample_tokenizer, batches.tokenizer, weights)
        self._end = batches.end_of_text
        if world.rank == 0 and len(self._prompts) < settings.arguments.samples:
            found = f"{len(self._prompts)} of {settings.arguments.samples} prompts found in the data"
            print(f"warning: code.arguments.samples: {found}", flush=True)
        if world.rank == 0 and self._text is None:
            why = "no readable tokenizer.json next to the weights; use code.arguments.sample-tokenizer"
            print(f"samples are printed as token ids: {why}", flush=True)

    def emit(self, step: int) -> None:
        """Continues every prompt and prints the results. All ranks must call it."""
        if not self._prompts:
            return
        prompts = [prompt.tokens for prompt in self._prompts]
        found = continued(self._backend, prompts, self._settings.arguments.sample_tokens, self._end)
        if self._world.rank == 0:
            for number, (prompt, tokens) in enumerate(zip(self._prompts, found, strict=True)):
                progress.emit("sample", step=step, number=number, tokens=tokens, **self._texts(prompt, tokens))

    def _texts(self, prompt: Prompt, tokens: list[int]) -> dict[str, str]:
        if self._text is None:
            return {}
        texts = {"text": self._text(tokens), "expected": self._text(prompt.expected)}
        return {"prompt": self._text(prompt.tokens)[-_CHARACTERS:]} | {name: text[:_CHARACTERS] for name, text in texts.items()}


def open_samples(settings: RunSettings, world: World, backend: Backend, batches: Batches, environ: Mapping[str, str]) -> Samples | None:
    """The sample generations; None if they are not requested. Raises InvalidRun like Samples."""
    if not settings.arguments.samples:
        return None
    weights = channel_folder(settings.weights, dict(environ), "model.weights") if settings.weights else None
    return Samples(settings, world, backend, batches, weights)
