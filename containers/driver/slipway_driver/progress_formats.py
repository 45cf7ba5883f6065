"""How trainers that people use print their progress, so that steps and losses are seen without a change to the script."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

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


_ITERATION = re.compile(r"^ *(?:\[[\d :.-]+\] )? *iteration +(?P<step>\d{1,12})/ *\d+ \|")
_EPOCH = re.compile(
    r"^Epoch (?P<epoch>\d{1,5})(?:: +\d+%\|[^|]*\| |(?:/-?\d+)? +[━╸╺ ]+)(?P<step>\d{1,12})/(?P<total>\d{1,9}) (?:\[|\d+:\d\d:\d\d )"
)
#: Any bar of tqdm or Rich, also without a length.
_BAR = re.compile(
    r"(?P<step>\d[\d.]{0,14}[kMGTPE]?)(?:/(?P<total>\d[\d.]{0,14}[kMGTPE]?|\?|--)| ?[A-Za-z]{1,20}) (?:\[\d+:\d\d|\d+:\d\d:\d\d )"
)
MAX_BARS = 100

#: Sources: output of the packages' versions in test/containers/fixtures/progress, and lines that people quote in their issues.
_FORMATS: Dict[str, Format] = {
    # pytorch/torchtitan#950 and #3393; a validation is none of its steps. Ranks of a pipeline that have no loss print -1.
    "torchtitan": _one(r"(?<!validate )\bstep: +(?P<step>\d{1,12}) +loss: +(?!-1\.0+\b)" + _NUMBER),
    # epfLLM/Megatron-LLM#11; the time in front: megatron-bridge 0.3.1 and Megatron-LM. A skipped iteration has no loss.
    "megatron": Format(_ITERATION, _ITERATION, re.compile(r"\blm loss: " + _NUMBER)),
    # NVIDIA-NeMo/Speech#10128.
    "nemo": _one(r"^Training epoch \d+, iteration \d+/\d+ \|.*\bglobal_step: (?P<step>\d{1,12}) \| reduced_train_loss: " + _NUMBER),
    # verl-project/verl#2060 and #1458; its fine-tuning prints train/loss.
    "verl": _one(r"(?:^|\) )step:(?P<step>\d{1,12}) - .*?\b(?:actor/pg_loss|train/loss):" + _NUMBER),
    # Drawn by tqdm, and by Rich.
    "lightning": Format(_EPOCH, _EPOCH, re.compile(r"[ ,](?:train_)?loss(?:_step)?(?:=|: )" + _NUMBER)),
    # huggingface/transformers 4 and 5, and everything that trains with its Trainer. ms-swift names the bar, and prints JSON.
    "transformers": Format(
        re.compile(r"^\{['\"]loss['\"]: ['\"]?[-+\dni]"),
        re.compile(r"^(?:Train: )? *\d+%\|[^|]*\| (?P<step>\d{1,12})/(?P<total>\d{1,9}) \["),
        re.compile(r"^\{['\"]loss['\"]: ['\"]?" + _NUMBER),
    ),
    # deepspeedai/DeepSpeed#1825: its engine, under any loop. Last, because the loops above print a loss as well.
    "deepspeed": _one(r"\[Rank 0\] step=(?P<step>\d{1,12}), skipped=\d+, lr="),
}
#: Programs that train with another one's loop.
_SAME = {"axolotl": "transformers", "llama-factory": "transformers"}


def terminal_variables(name: str, inherited: Mapping[str, str]) -> Dict[str, str]:
    """Variables with which Lightning draws its bar by Rich into a log. Without them Rich draws nothing where no terminal is
    (https://rich.readthedocs.io/en/stable/console.html, "Environment Variables", 2026-11-27).

    :param name: `progress.format` of the run file
    """
    wanted = {"TTY_COMPATIBLE": "1", "COLUMNS": "200"} if name == "lightning" else {}
    return {variable: value for variable, value in wanted.items() if variable not in inherited}


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
        self._longest: Dict[str, int] = {}
        self._last: Dict[str, int] = {}
        self._losses: Dict[str, Optional[float]] = {}
        #: Whether the bar of a rank was erased since it was drawn; nothing for a rank whose bar never was.
        self._erased: Dict[str, bool] = {}
        #: Where each bar stands, by its rank, its words and its length.
        self._bars: Dict[Tuple[str, str, str], str] = {}

    def read(self, rank: str, text: str) -> Optional[Dict[str, Any]]:
        """The event of a line, without the label of its rank; None for other lines. `bar`: a bar moved whose place is no step."""
        if text.isspace():
            self._erased[rank] = True
        moved = self._moves(rank, text)
        return self._progress(rank, text) or ({"event": "bar"} if moved else None)

    def _moves(self, rank: str, text: str) -> bool:
        found = _BAR.search(text) if "[" in text or "/" in text else None
        if found is None:
            return False
        bar = (rank, re.sub(r"[^A-Za-z]", "", text[: found.start()]), found["total"] or "")
        if bar[1:] == ("Training", "?") and found["step"].isdecimal():
            # Lightning after a resume within an epoch; the last epoch that follows may be shorter than this one.
            self._longest[rank] = max(self._longest.get(rank, 0), int(found["step"]))
        moved = self._bars.get(bar) != found["step"]
        if len(self._bars) > MAX_BARS:
            self._bars.clear()
        self._bars[bar] = found["step"]
        return moved

    def _progress(self, rank: str, text: str) -> Optional[Dict[str, Any]]:
        chosen = self._format or self._decide(rank, text)
        if chosen is None:
            return None
        found, loss = chosen.step.search(text), self._loss(chosen, text)
        if found is None and chosen.is_bar:
            self._wait(rank, text, loss)
            return None
        if found is None:
            return None if loss is None else {"event": "metric", "loss": loss}
        step = self._step(rank, found.groupdict())
        waited = None if step is None or not chosen.is_bar else self._waited(rank)
        if step is None or (step == self._last.get(rank) and waited is None):
            return None
        self._last[rank] = step
        loss = waited if loss is None else loss
        return {"event": "step", "step": step, **({} if loss is None else {"loss": loss})}

    def _wait(self, rank: str, text: str, loss: Optional[float]) -> None:
        """Keeps a loss for the bar below it, which shows its step; the one above may be older.

        tqdm erases its bars, writes the line, and draws them again. stdout is read before what came before it on stderr, so a loss belongs
        to the first bar that was erased. Where one waits already, a callback of the script has printed it again.
        """
        if loss is not None or (rank in self._erased and text.startswith(("{'eval_", '{"eval_'))):
            self._losses.setdefault(rank, loss)

    def _waited(self, rank: str) -> Optional[float]:
        """The loss of a bar, which is one that was erased before, unless the bars of this rank never are."""
        if self._erased.get(rank) is False:
            return None
        if rank in self._erased:
            self._erased[rank] = False
        return self._losses.pop(rank, None)

    def _decide(self, rank: str, text: str) -> Optional[Format]:
        if not any(word in text for word in ("step", "loss", "iteration", "%|", "Epoch")):
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
        length = self._totals[rank] = max(known, total, self._longest.get(rank, 0))
        done = int(found["step"])
        step = done + int(found.get("epoch", 0)) * length
        # A bar is drawn again, and begins with what is done already; one of an epoch begins with none of its steps.
        return step if done > 0 and step >= self._last.get(rank, 0) else None

    @staticmethod
    def _loss(chosen: Format, text: str) -> Optional[float]:
        found = chosen.loss.search(text) if chosen.loss else None
        return float(found["loss"]) if found else None
