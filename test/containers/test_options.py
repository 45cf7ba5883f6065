"""Options check all their values, and say of each what must hold."""

import pytest

from slipway_trainer.arguments import parse_arguments
from slipway_trainer.exits import InvalidRun
from slipway_trainer.tokenize.arguments import read_arguments


def issues_of(*words: str) -> list[str]:
    issues: list[str] = []
    parse_arguments(words, issues)
    return issues


@pytest.mark.parametrize(
    ("words", "must"),
    [
        (("--warmup-steps", "1.5"), "a whole number of at least 0, got 1.5"),
        (("--log-every-steps", "0"), "a whole number of at least 1, got 0"),
        (("--learning-rate", "nan"), "a number of at least 0, got nan"),
        (("--learning-rate", "1e999"), "a number of at least 0, got 1e999"),
        (("--beta2", "1"), "a number of at least 0 and below 1, got 1"),
        (("--beta", "0"), "a number above 0, got 0"),
        (("--decay-share", "1.1"), "a number from 0 to 1, got 1.1"),
        (("--schedule", "linear"), "cosine, wsd or constant, got linear"),
        (("--clip-norm", ""), "a number of at least 0, got ''"),
    ],
)
def test_a_value_that_is_not_taken_is_named(words: tuple[str, str], must: str) -> None:
    assert issues_of(*words) == [f"code.arguments.{words[0][2:]}: must be {must}; correct or remove it"]


def test_all_errors_are_reported_at_once_and_the_defaults_are_kept() -> None:
    issues: list[str] = []
    words = ["--shcedule", "cosine", "--warmup-steps", "x", "--beta1", "2", "--mlflow", "yes", "--seed=3"]
    words += ["--learning-rate", "0.1", "--learning-rate", "0.2"]
    found = parse_arguments(words, issues)
    assert [issue.split(":")[0] for issue in issues] == [
        "code.arguments.shcedule",
        "code.arguments",
        "code.arguments.seed",
        "code.arguments.warmup-steps",
        "code.arguments.beta1",
    ]
    assert (found.warmup_steps, found.beta1, found.mlflow, found.learning_rate) == (None, 0.9, True, 0.2)
    assert found.written == {"warmup-steps": "x", "beta1": "2", "learning-rate": "0.2"}


def test_an_option_without_its_value_is_an_error() -> None:
    (issue,) = issues_of("--schedule")
    assert issue.startswith("code.arguments: must be options with their values, got --schedule (argument --schedule: expected one")


def test_negative_numbers_are_values() -> None:
    (issue,) = issues_of("--learning-rate", "-0.1")
    assert issue.startswith("code.arguments.learning-rate: must be a number of at least 0, got -0.1;")


def test_the_tokenise_step_refuses_what_it_does_not_know() -> None:
    with pytest.raises(InvalidRun) as raised:
        read_arguments(["--shard-tokens", "0", "--tokenzier", "byte"])
    assert [issue.split(":")[0] for issue in raised.value.issues] == ["code.arguments.tokenzier", "code.arguments.shard-tokens"]
    assert read_arguments(["--shard-tokens", "1000"]).shard_tokens == 1000
