"""How trainers that people use print their progress, so that steps and losses are seen without a change to the script."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Optional

_NUMBER = r"(?P<loss>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"


class Format(NamedTuple):
    """`decides`: what only this format prints. `step`: its groups are `step`, and for a bar `total` and `epoch`, which counts from 0."""

    decides: "re.Pattern[str]"
    step: "re.Pattern[str]"
    loss: "Optional[re.Pattern[str]]"

    @property
    def is_bar(self) -> bool:
        """Whether steps are those of a progress bar."""
        return "total" in self.step.groupindex


def _one(pattern: str) -> Format:
    """A format whose line has everything."""
    found = re.compile(pattern)
    return Format(found, found, found if "loss" in found.groupindex else None)


#: Sources: output of the packages' versions in test/containers/fixtures/progress, and lines that people quote in their issues.
_FORMATS: Dict[str, Format] = {
    # pytorch/torchtitan#950 and #3393.
    "torchtitan": _one(r"\bstep: +(?P<step>\d{1,12}) +loss: +" + _NUMBER),
    # NVIDIA/Megatron-LM; epfLLM/Megatron-LLM#11. NeMo: NVIDIA-NeMo/Speech#10128.
    "megatron": _one(r"^ *iteration +(?P<step>\d{1,12})/ *\d+ \|.*\blm loss: " + _NUMBER),
    "nemo": _one(r"^Training epoch \d+, iteration \d+/\d+ \|.*\bglobal_step: (?P<step>\d{1,12}) \| reduced_train_loss: " + _NUMBER),
    # verl-project/verl#2060 and #1458; its fine-tuning prints train/loss.
    "verl": _one(r"(?:^|\) )step:(?P<step>\d{1,12}) - .*?\b(?:actor/pg_loss|train/loss):" + _NUMBER),
    "lightning": Format(
        re.compile(r"^Epoch \d+: +\d+%\|[^|]*\| \d+/\d+ \["),
        re.compile(r"^Epoch (?P<epoch>\d{1,5}): +\d+%\|[^|]*\| (?P<step>\d{1,12})/(?P<total>\d{1,9}) \["),
        re.compile(r"[ ,](?:train_)?loss(?:_step)?=" + _NUMBER),
    ),
    # huggingface/transformers 4 and 5, and everything that trains with its Trainer.
    "transformers": Format(
        re.compile(r"^\{'loss': '?[-+\dni]"),
        re.compile(r"^ *\d+%\|[^|]*\| (?P<step>\d{1,12})/(?P<total>\d{1,9}) \["),
        re.compile(r"^\{'loss': '?" + _NUMBER),
    ),
    # deepspeedai/DeepSpeed#1825: its engine, under any loop. Last, because the loops above print a loss as well.
    "deepspeed": _one(r"\[Rank 0\] step=(?P<step>\d{1,12}), skipped=\d+, lr="),
}
#: Programs that train with another one's loop.
_SAME = {"axolotl": "transformers", "llama-factory": "transformers"}


class FormatReader:
    """Finds steps and losses in the lines of one start.

    :param name: `auto` takes the first format that a line decides
    """

    def __init__(self, name: str) -> None:
        name = _SAME.get(name, name)
        self._candidates = _FORMATS if name == "auto" else {name: _FORMATS[name]}
        self._format: Optional[Format] = None
        #: The format once a line has decided it; "" before.
        self.found = ""
        #: Of the bar of each rank: its length, which tells it from the bars of evaluations, its last step, and the loss that waits for it.
        self._totals: Dict[str, int] = {}
        self._last: Dict[str, int] = {}
        self._losses: Dict[str, float] = {}

    def read(self, rank: str, text: str) -> Optional[Dict[str, Any]]:
        """The event of a line, without the label of its rank; None for other lines."""
        chosen = self._format or self._decide(rank, text)
        if chosen is None:
            return None
        found, loss = chosen.step.search(text), self._loss(chosen, text)
        if found is None:
            # A bar is drawn again below a loss, and shows its step; the one above may be older.
            if loss is not None and chosen.is_bar:
                self._losses[rank] = loss
                return None
            return None if loss is None else {"event": "metric", "loss": loss}
        step = self._step(rank, found.groupdict())
        if step is None:
            return None
        loss = self._losses.pop(rank, loss)
        return {"event": "step", "step": step, **({} if loss is None else {"loss": loss})}

    def _decide(self, rank: str, text: str) -> Optional[Format]:
        if not ("step" in text or "loss" in text or "%|" in text):
            # Of no format, which the patterns take ten times as long to find out.
            return None
        for name, candidate in self._candidates.items():
            bar = candidate.step.search(text) if candidate.is_bar else None
            if bar:
                self._totals[rank] = int(bar["total"])
            if candidate.decides.search(text):
                self.found, self._format = name, candidate
                return candidate
        return None

    def _step(self, rank: str, found: Dict[str, str]) -> Optional[int]:
        total = int(found.get("total", 0))
        known = self._totals.setdefault(rank, total)
        if total != known and "epoch" not in found:
            return None
        # The last epoch of a limited number of steps is shorter.
        length = self._totals[rank] = max(known, total)
        step = int(found["step"]) + int(found.get("epoch", 0)) * length
        # A bar is drawn again, and begins with what is done already.
        last = self._last.get(rank, 0)
        if step < max(1, last) or (step == last and rank not in self._losses):
            return None
        self._last[rank] = step
        return step

    @staticmethod
    def _loss(chosen: Format, text: str) -> Optional[float]:
        found = chosen.loss.search(text) if chosen.loss else None
        return float(found["loss"]) if found else None
