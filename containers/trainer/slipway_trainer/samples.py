"""Sample generations: how the model continues the beginnings of a few documents while it trains, for people to read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from slipway_trainer import progress
from slipway_trainer.backend import Backend
from slipway_trainer.batches import Batches, channel_folder
from slipway_trainer.detokenize import find_detokenizer
from slipway_trainer.greedy import continued
from slipway_trainer.loss import IGNORED
from slipway_trainer.settings import RunSettings
from slipway_trainer.world import World

#: Samples that are looked at for each prompt: those with a prompt that is too long, or with nothing behind it, are passed over.
_LOOKED_AT = 16
#: Characters of a text in a progress line; of a prompt the last ones.
_CHARACTERS = 4000


@dataclass(frozen=True)
class Prompt:
    """The beginning of a document, and what comes behind it there, as tokens."""

    tokens: list[int]
    expected: list[int]


def read_prompts(batches: Batches, settings: RunSettings) -> list[Prompt]:
    """The prompts of a run: of the first samples of its data, the same on every rank and at every step. Of text the first tokens; of
    conversations, completions and preferences what stands before the first token that the loss is on."""
    arguments, training = settings.arguments, settings.training
    longest = training.sequence_length - arguments.sample_tokens
    found: list[Prompt] = []
    for sample in batches.first_samples(_LOOKED_AT * arguments.samples):
        tokens, asked = _beginning(sample, training.objective, arguments.sample_prompt_tokens)
        if 0 < asked <= longest and asked < len(tokens):
            found.append(Prompt(tokens[:asked], tokens[asked : asked + arguments.sample_tokens]))
        if len(found) == arguments.samples:
            break
    return found


def _beginning(sample: Tensor, objective: str, of_text: int) -> tuple[list[int], int]:
    """The first document of a sample, of preferences the chosen one, and the tokens of it that are the prompt."""
    if objective == "pretrain":
        return sample.tolist(), of_text
    tokens_L, targets_L, documents_L = sample[0] if objective == "dpo" else sample
    here_L = documents_L == documents_L[0]
    targets = (targets_L[here_L] != IGNORED).nonzero().flatten().tolist()
    # A position's target is the token behind it. Behind the last one nothing of the document comes.
    return tokens_L[here_L][: targets[-1] + 2 if targets else 0].tolist(), targets[0] + 1 if targets else 0


class Samples:
    """The sample generations of one run, on one rank."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, batches: Batches, weights: Path | None) -> None:
        """Raises Settings for a tokenizer that cannot be read."""
        self._settings, self._world, self._backend = settings, world, backend
        self._prompts = read_prompts(batches, settings)
        self._text = find_detokenizer(settings.arguments.sample_tokenizer, batches.tokenizer, weights)
        self._end = batches.end_of_text
        if world.rank == 0 and len(self._prompts) < settings.arguments.samples:
            print(f"warning: --samples: {len(self._prompts)} of {settings.arguments.samples} prompts were found in the data", flush=True)
        if world.rank == 0 and self._text is None:
            print("samples are token ids: no tokenizer.json beside the weights can be read; --sample-tokenizer may name one", flush=True)

    def say(self, step: int) -> None:
        """Continues every prompt and says what came of it; every rank must call this."""
        if not self._prompts:
            return
        prompts = [prompt.tokens for prompt in self._prompts]
        found = continued(self._backend, prompts, self._settings.arguments.sample_tokens, self._end)
        if self._world.rank == 0:
            for number, (prompt, tokens) in enumerate(zip(self._prompts, found, strict=True)):
                progress.say("sample", step=step, number=number, tokens=tokens, **self._texts(prompt, tokens))

    def _texts(self, prompt: Prompt, tokens: list[int]) -> dict[str, str]:
        if self._text is None:
            return {}
        texts = {"text": self._text(tokens), "expected": self._text(prompt.expected)}
        return {"prompt": self._text(prompt.tokens)[-_CHARACTERS:]} | {name: text[:_CHARACTERS] for name, text in texts.items()}


def open_samples(settings: RunSettings, world: World, backend: Backend, batches: Batches, environ: Mapping[str, str]) -> Samples | None:
    """None for a run that asks for none. Raises Settings as Samples does."""
    if not settings.arguments.samples:
        return None
    weights = channel_folder(settings.weights, dict(environ)) if settings.weights else None
    return Samples(settings, world, backend, batches, weights)
