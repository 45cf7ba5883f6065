"""Command line arguments of the trainer, set in a run file as `code.arguments`."""

import argparse
from collections.abc import Sequence

from slipway_trainer.options import Number, OneOf, Option, Options, Text, Whole

#: Most logits of a chunk of the loss, by default.
LOGITS_OF_CHUNK = 1 << 28
_SHARE = Number(at_least=0, at_most=1)
_AT_LEAST_0 = Number(at_least=0)


OPTIONS = (
    # Learning rate schedule, AdamW and gradient clipping.
    Option("learning-rate", _AT_LEAST_0, 3e-4, "highest learning rate, reached after the warm-up"),
    Option("minimum-learning-rate-ratio", _SHARE, 0.1, "final learning rate as a share of the highest"),
    Option("warmup-steps", Whole(), None, "default: 1 %% of the steps"),
    Option("schedule", OneOf(("cosine", "wsd", "constant")), "cosine", "after the warm-up; wsd: constant, then linear decay"),
    Option("decay-share", _SHARE, 0.2, "wsd: the share of the steps in which the rate decays"),
    Option("weight-decay", _AT_LEAST_0, 0.1, "not applied to norms"),
    Option("beta1", Number(at_least=0, below=1), 0.9),
    Option("beta2", Number(at_least=0, below=1), 0.95),
    Option("adam-epsilon", _AT_LEAST_0, 1e-8),
    Option("clip-norm", _AT_LEAST_0, 1.0, "0 = no clipping"),
    # Terms of the loss.
    Option("z-loss", _AT_LEAST_0, 0.0, "weight of the squared log-partition of the softmax"),
    Option(
        "mtp-loss",
        _AT_LEAST_0,
        0.3,
        "weight of the mean loss of multi-token prediction modules (mtpLayers); DeepSeek-V3: 0.3, and 0.1 in the last third",
    ),
    Option("balance-loss", _AT_LEAST_0, 0.0, "weight of the load-balancing loss of experts; published: 0.0001 to 0.01"),
    Option(
        "balance-loss-over",
        OneOf(("sequence", "micro-batch")),
        "sequence",
        "tokens over which the load is balanced: each sequence (DeepSeek-V3) or a micro-batch (Switch Transformers)",
    ),
    Option("router-z-loss", _AT_LEAST_0, 0.0, "weight of the squared log-partition of the router; published: 0.001"),
    Option(
        "routing-bias-rate",
        _AT_LEAST_0,
        0.0,
        "change of the routing bias per step: down for experts with more tokens than the mean, up for others; published: 0.001",
    ),
    Option("beta", Number(above=0), 0.1, "with objective dpo: strength of the penalty for deviations from the initial weights"),
    # Channels, and the intervals of evaluation, logging and saving.
    Option("data-channel", Text(), "train", "channel with the token shards"),
    Option("eval-channel", Text(), "", "channel with shards to evaluate on"),
    Option("eval-every-steps", Whole(), 0, "0 = only after the last step; every run with an eval-channel evaluates then"),
    Option("eval-batches", Whole(1), 20, "global batches of an evaluation, limited by the size of the channel"),
    Option("log-every-steps", Whole(1), 1),
    Option("save-every-steps", Whole(), 0, "instead of an interval in minutes"),
    # Sample generations.
    Option(
        "samples",
        Whole(),
        0,
        "number of prompts from the eval-channel, otherwise from the training data, that the model continues by greedy decoding at"
        " every evaluation, also without an eval-channel; the log contains the results; 0 = none",
    ),
    Option("sample-tokens", Whole(1), 64, "tokens of a continuation, each a forward pass of the whole model"),
    Option("sample-prompt-tokens", Whole(1), 32, "length of the prompt in tokens, for text; examples have their own prompts"),
    Option("sample-tokenizer", Text(), "", "byte, or the path of a tokenizer.json, to print text; default: the one next to the weights"),
    # Actions on bad losses, chunking of the loss, and time limits of a step.
    Option("loss-spike-factor", _AT_LEAST_0, 0.0, "exit with 73 when the loss is this many times its recent mean; 0 = off"),
    Option(
        "loss-policy",
        OneOf(("stop", "alert", "rollback")),
        "stop",
        "stop: exit with 73 and restart from the newest checkpoint, a few times; alert: report a spike and continue (a loss that is"
        " not finite still exits); rollback: exit, go back to the previous checkpoint and skip the data up to the failure, at most twice",
    ),
    Option("loss-chunks", Whole(), 0, "number of sequence chunks in which the loss is computed; 0 = by vocabulary size"),
    Option("minimum-step-seconds", _AT_LEAST_0, 0.0, "wait so that a step takes at least this long (demos and tests)"),
    Option("collective-timeout-seconds", Number(above=0), 600.0, "timeout of a collective, after which the job ends"),
    Option(
        "steady-timeout-seconds",
        _AT_LEAST_0,
        150.0,
        "the same between regular steps, but at least the time of five steps; 0 = no shorter timeout",
    ),
    # Reports, profiling, the backend and exports.
    Option("tensorboard", None, False, "also write progress as TensorBoard events; the image must have tensorboard"),
    Option("mlflow", None, False, "also send progress to the MLflow server of MLFLOW_TRACKING_URI; the image must have mlflow"),
    Option("wandb", None, False, "also send progress to Weights & Biases (WANDB_* variables); the image must have wandb"),
    Option("profile", None, False, "a trace of a few steps of rank 0 by PyTorch's profiler, next to the run's heartbeat in S3"),
    Option("profile-after-steps", Whole(), 10, "steps of each start before the trace, which compile and allocate"),
    Option("profile-steps", Whole(1), 3, "steps in the trace"),
    Option("recompute-layers", Whole(1), 1, "with activationCheckpointing full: number of layers that are recomputed together"),
    Option("backend", OneOf(("auto", "fsdp1", "fsdp2")), "auto", "auto: fsdp2, but fsdp1 before PyTorch 2.6 and for SMDDP"),
    Option("host-check-seconds", _AT_LEAST_0, 60.0, "how often hosts are compared to find a slow one; 0 = never"),
    Option("export-weights", None, False, "at the end, write model.safetensors and config.json to the model folder"),
    Option("export-adapter", None, False, "with training.lora: export it to adapter/ of the model folder in PEFT's format"),
)


def options() -> Options:
    """The options of the trainer."""
    return Options("builtin", __doc__, OPTIONS)


def parse_arguments(words: Sequence[str], issues: list[str]) -> argparse.Namespace:
    """Parses the arguments; errors are added to `issues`."""
    return options().read(words, issues)
