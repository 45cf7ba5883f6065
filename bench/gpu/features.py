"""What a run file can ask of the built-in trainer, on the GPU: short runs of the trainer itself, several at a time. Runs that compute the
same thing in another way must have the same losses."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from case import Case, Found
from machine import Machine, lacks_gpu, lacks_package
from measurement import OURS, one_rank_of, steps_of

AT_ONCE, PATIENCE_SECONDS = 8, 240
#: Losses of runs in bfloat16 that sum in another order, and those with products in float8.
SAME, IN_FLOAT8 = 0.03, 0.1
#: Losses of mixtures: rounding also changes which experts a token visits.
ROUTED = 0.06
DENSE = {"layers": 3, "hiddenSize": 256, "attentionHeads": 4, "kvHeads": 2, "headSize": 64, "ffnHiddenSize": 512, "vocabularySize": 512,
         "gatedMlp": True, "tiedEmbeddings": False}  # fmt: skip
MIXTURE = DENSE | {"experts": 8, "expertsPerToken": 2, "routing": {"score": "softmax", "normalise": True}}
LORA = {"lora": {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj", "up_proj"]}}
QLORA = {"lora": LORA["lora"] | {"quantization": "nf4"}}


@dataclass(frozen=True)
class Way:
    """A run. `like`: the way whose losses it must have, within `within`."""

    data: str = "plain"
    model: dict[str, Any] = field(default_factory=lambda: DENSE)
    training: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=lambda: {"compile": False})
    arguments: tuple[str, ...] = ()
    like: str = ""
    within: float = SAME


COMPILED = {"compile": True}
WAYS = {
    "eager": Way(),
    "compiled": Way(parameters=COMPILED, like="eager"),
    "selective": Way(training={"activationCheckpointing": "selective"}, like="eager"),
    "selective, compiled": Way(training={"activationCheckpointing": "selective"}, parameters=COMPILED, like="eager"),
    "full, compiled": Way(training={"activationCheckpointing": "full"}, parameters=COMPILED, like="eager"),
    "offload": Way(training={"activationCheckpointing": "full", "activationOffload": True}, like="eager"),
    "offload, selective, compiled": Way(
        training={"activationCheckpointing": "selective", "activationOffload": True}, parameters=COMPILED, like="eager"
    ),
    "groups of layers": Way(training={"activationCheckpointing": "full"}, arguments=("--recompute-layers", "2"), like="eager"),
    "float8, compiled": Way(training={"precision": "fp8"}, parameters=COMPILED, like="eager", within=IN_FLOAT8),
    "float8, selective": Way(training={"precision": "fp8", "activationCheckpointing": "selective"}, like="eager", within=IN_FLOAT8),
    "z-loss, pieces": Way(arguments=("--loss-chunks", "4"), parameters=COMPILED, like="eager"),
    "mask of documents": Way("texts", training={"documentMask": True}),
    "mask of documents, compiled": Way("texts", training={"documentMask": True}, parameters=COMPILED, like="mask of documents"),
    "mixture": Way(model=MIXTURE),
    "mixture, selective": Way(model=MIXTURE, training={"activationCheckpointing": "selective"}, like="mixture", within=ROUTED),
    "mixture, compiled": Way(model=MIXTURE, parameters=COMPILED, like="mixture", within=ROUTED),
    "mixture, balance": Way(
        model=MIXTURE, arguments=("--balance-loss", "0.001", "--router-z-loss", "0.0001"), like="mixture", within=ROUTED
    ),
    "fine-tuning": Way("conversations", training={"objective": "sft"}),
    "fine-tuning, compiled": Way("conversations", training={"objective": "sft"}, parameters=COMPILED, like="fine-tuning"),
    "fine-tuning, LoRA": Way("conversations", training={"objective": "sft"} | LORA),
    "fine-tuning, LoRA, compiled": Way(
        "conversations", training={"objective": "sft"} | LORA, parameters=COMPILED, like="fine-tuning, LoRA"
    ),
    "preferences": Way("preferences", training={"objective": "dpo"}),
    "preferences, LoRA, compiled": Way("preferences", training={"objective": "dpo"} | LORA, parameters=COMPILED),
}
if find_spec("bitsandbytes"):
    WAYS |= {
        "fine-tuning, QLoRA": Way("conversations", training={"objective": "sft"} | QLORA),
        "fine-tuning, QLoRA, selective": Way(
            "conversations",
            training={"objective": "sft", "activationCheckpointing": "selective"} | QLORA,
            like="fine-tuning, QLoRA",
        ),
        "fine-tuning, QLoRA, compiled": Way(
            "conversations", training={"objective": "sft"} | QLORA, parameters=COMPILED, like="fine-tuning, QLoRA"
        ),
    }


def _tokens(folder: Path) -> dict[str, Path]:
    """Token shards of each kind, by the tokenise step."""
    from chat_data import tokenise

    from rank_world import write_shards

    turns = [{"messages": [{"role": "user", "content": "count"}, {"role": "assistant", "content": f"{n} and {n + 1}"}]} for n in range(200)]
    pairs = [{"prompt": f"{n} and", "chosen": f" {n + 1}" * (n % 5 + 1), "rejected": " nothing at all"} for n in range(100)]
    template = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    texts = [{"text": f"{n} and one are {n + 1}, " * (n % 7 + 1)} for n in range(400)]
    return {
        "texts": tokenise(folder / "texts", texts, Path("byte")),
        "plain": write_shards(folder / "plain", 60_000),
        "conversations": tokenise(folder / "conversations", turns, Path("byte"), "--chat-template", template),
        "preferences": tokenise(folder / "preferences", pairs, Path("byte")),
    }


def _losses(way: Way, tokens: Path, folder: Path) -> list[float]:
    training = {"sequenceLength": 128, "microBatchSize": 2, "globalBatchSize": 4, "steps": 6, "precision": "bf16", "seed": 7}
    content = {
        "model": way.model,
        "training": training | {"activationCheckpointing": "none"} | way.training,
        "distribution": {"library": "fsdp", "collectives": "auto", "parameters": way.parameters},
        "checkpoints": {"mode": "none"},
    }
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(content))
    environ = one_rank_of(folder, tokens) | {"SM_MODEL_DIR": str(folder / "model")}
    environ |= {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    words = [sys.executable, *OURS, "--learning-rate", "0.001", "--warmup-steps", "1", *way.arguments]
    done = subprocess.run(words, env=os.environ | environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    (folder / "out").write_text(done.stdout)
    (folder / "err").write_text(done.stderr)
    steps = steps_of(done.stdout)
    if done.returncode != 0 or not steps:
        raise RuntimeError(" ".join(done.stderr.split())[-300:])
    return [step["loss"] for step in steps]


def ways(_machine: Machine, folder: Path) -> Found:
    tokens, wrong = _tokens(folder / "tokens"), []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {name: pool.submit(_losses, way, tokens[way.data], folder / name.replace(", ", "-")) for name, way in WAYS.items()}
    losses: dict[str, list[float]] = {}
    for name, future in running.items():
        try:
            losses[name] = future.result()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{name}: {error}")
    largest = 0.0
    for name, way in WAYS.items():
        if not way.like or name not in losses or way.like not in losses:
            continue
        off = max(abs(one - other) for one, other in zip(losses[name], losses[way.like], strict=True))
        largest = max(largest, off if way.within < IN_FLOAT8 else 0.0)
        if not off <= way.within:
            wrong.append(f"{name}: losses are {off:.3f} off {way.like}")
    wrong += [f"{name}: the loss does not fall" for name, found in losses.items() if not found[-1] < found[0]]
    return Found(f"{len(losses)} of {len(WAYS)} ways ran; bf16 within {largest:.4f}" + "".join(f"; {one}" for one in wrong), not wrong)


CASES = (
    Case(
        "every training option, one short run each",
        "loss matches the unoptimised run",
        lambda machine: lacks_gpu(machine, 10, (8, 9)) or lacks_package(machine, "triton"),
        ways,
    ),
)
