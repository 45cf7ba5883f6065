"""Command line arguments of the trainer, set in a run file as `code.arguments`."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn


class _Parser(argparse.ArgumentParser):
    """Collects errors instead of exiting, so that they are reported together with those of job.json."""

    def __init__(self, issues: list[str], **options: Any) -> None:
        super().__init__(**options)
        self._issues = issues

    def error(self, message: str) -> NoReturn:
        self._issues.append(f"code.arguments: {message}")
        raise _Stop


class _Stop(Exception):
    pass


def _add_optimizer(add: Callable[..., object]) -> None:
    """Learning rate schedule, AdamW and gradient clipping."""
    add("--learning-rate", type=float, default=3e-4, help="highest learning rate, reached after the warm-up")
    add("--minimum-learning-rate-ratio", type=float, default=0.1, help="final learning rate as a share of the highest")
    add("--warmup-steps", type=int, default=None, help="default: 1 %% of the steps")
    add("--schedule", choices=("cosine", "wsd", "constant"), default="cosine", help="after the warm-up; wsd: constant, then linear decay")
    add("--decay-share", type=float, default=0.2, help="wsd: the share of the steps in which the rate decays")
    add("--weight-decay", type=float, default=0.1, help="not applied to norms")
    add("--beta1", type=float, default=0.9)
    add("--beta2", type=float, default=0.95)
    add("--adam-epsilon", type=float, default=1e-8)
    add("--clip-norm", type=float, default=1.0, help="0 = no clipping")


def _add_loss(add: Callable[..., object]) -> None:
    """Terms of the loss."""
    add("--z-loss", type=float, default=0.0, help="weight of the squared log-partition of the softmax")
    add(
        "--mtp-loss",
        type=float,
        default=0.3,
        help="weight of the mean loss of multi-token prediction modules (mtpLayers); DeepSeek-V3: 0.3, and 0.1 in the last third",
    )
    add("--balance-loss", type=float, default=0.0, help="weight of the load-balancing loss of experts; published: 0.0001 to 0.01")
    add(
        "--balance-loss-over",
        choices=("sequence", "micro-batch"),
        default="sequence",
        help="tokens over which the load is balanced: each sequence (DeepSeek-V3) or a micro-batch (Switch Transformers)",
    )
    add("--router-z-loss", type=float, default=0.0, help="weight of the squared log-partition of the router; published: 0.001")
    add(
        "--routing-bias-rate",
        type=float,
        default=0.0,
        help="change of the routing bias per step: down for experts with more tokens than the mean, up for others; published: 0.001",
    )
    add("--beta", type=float, default=0.1, help="with objective dpo: strength of the penalty for deviations from the initial weights")


def _add_data_and_intervals(add: Callable[..., object]) -> None:
    """Channels, and the intervals of evaluation, logging and saving."""
    add("--data-channel", default="train", help="channel with the token shards")
    add("--eval-channel", default="", help="channel with shards to evaluate on")
    add("--eval-every-steps", type=int, default=0, help="0 = only after the last step; every run with an eval-channel evaluates then")
    add("--eval-batches", type=int, default=20, help="global batches of an evaluation, limited by the size of the channel")
    add("--log-every-steps", type=int, default=1)
    add("--save-every-steps", type=int, default=0, help="instead of an interval in minutes")


def _add_samples(add: Callable[..., object]) -> None:
    """Sample generations."""
    add(
        "--samples",
        type=int,
        default=0,
        help="number of prompts from the eval-channel, otherwise from the training data, that the model continues by greedy decoding at"
        " every evaluation, also without an eval-channel; the log contains the results; 0 = none",
    )
    add("--sample-tokens", type=int, default=64, help="tokens of a continuation, each a forward pass of the whole model")
    add("--sample-prompt-tokens", type=int, default=32, help="length of the prompt in tokens, for text; examples have their own prompts")
    add("--sample-tokenizer", default="", help="byte, or the path of a tokenizer.json, to print text; default: the one next to the weights")


def _add_step(add: Callable[..., object]) -> None:
    """Actions on bad losses, chunking of the loss, and time limits of a step."""
    add(
        "--loss-spike-factor",
        type=float,
        default=0.0,
        help="exit with 73 when the loss is this many times its recent mean; 0 = off",
    )
    add(
        "--loss-policy",
        choices=("stop", "alert", "rollback"),
        default="stop",
        help="stop: exit with 73 and restart from the newest checkpoint, a few times; alert: report a spike and continue (a loss that is"
        " not finite still exits); rollback: exit, go back to the previous checkpoint and skip the data up to the failure, at most twice",
    )
    add("--loss-chunks", type=int, default=0, help="number of sequence chunks in which the loss is computed; 0 = by vocabulary size")
    add("--minimum-step-seconds", type=float, default=0.0, help="wait so that a step takes at least this long (demos and tests)")
    add("--collective-timeout-seconds", type=float, default=600.0, help="timeout of a collective, after which the job ends")
    add(
        "--steady-timeout-seconds",
        type=float,
        default=150.0,
        help="the same between regular steps, but at least the time of five steps; 0 = no shorter timeout",
    )


def _add_reports_and_exports(add: Callable[..., object]) -> None:
    """Reports, profiling, the backend and exports."""
    add("--tensorboard", action="store_true", help="also write progress as TensorBoard events; the image must have tensorboard")
    add("--mlflow", action="store_true", help="also send progress to the MLflow server of MLFLOW_TRACKING_URI; the image must have mlflow")
    add("--wandb", action="store_true", help="also send progress to Weights & Biases (WANDB_* variables); the image must have wandb")
    add("--profile", action="store_true", help="a trace of a few steps of rank 0 by PyTorch's profiler, next to the run's heartbeat in S3")
    add("--profile-after-steps", type=int, default=10, help="steps of each start before the trace, which compile and allocate")
    add("--profile-steps", type=int, default=3, help="steps in the trace")
    add("--recompute-layers", type=int, default=1, help="with activationCheckpointing full: number of layers that are recomputed together")
    add("--backend", choices=("auto", "fsdp1", "fsdp2"), default="auto", help="auto: fsdp2, but fsdp1 before PyTorch 2.6 and for SMDDP")
    add("--host-check-seconds", type=float, default=60.0, help="how often hosts are compared to find a slow one; 0 = never")
    add("--export-weights", action="store_true", help="at the end, write model.safetensors and config.json to the model folder")
    add("--export-adapter", action="store_true", help="with training.lora: export it to adapter/ of the model folder in PEFT's format")


def _parser(issues: list[str]) -> argparse.ArgumentParser:
    parser = _Parser(issues, prog="slipway_trainer", description=__doc__, allow_abbrev=False)
    for add_group in (_add_optimizer, _add_loss, _add_data_and_intervals, _add_samples, _add_step, _add_reports_and_exports):
        add_group(parser.add_argument)
    return parser


def parse_arguments(words: Sequence[str], issues: list[str]) -> argparse.Namespace:
    """Parses the arguments; errors are added to `issues`. An unknown argument is an error, to detect typos."""
    parser = _parser(issues)
    try:
        return parser.parse_args(list(words))
    except _Stop:
        return parser.parse_args([])
