"""`python -m slipway VERB`: the verbs of the command line that need no Node, with its exit codes."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO, get_args, get_type_hints

from ._display import list_text, status_text
from ._plain_text import plain_line, plain_text
from .environment import Environment
from .errors import Refused, SlipwayError, UsageError
from .types import Status

_RUN_FAILED, _INTERRUPTED = 4, 130
#: An event of CloudWatch Logs may have 1 MB.
_MAX_LINE = 1_100_000


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        name = arguments.environment or os.environ.get("SLIPWAY_ENVIRONMENT")
        if not name:
            raise UsageError("--environment: must be given, got nothing; name an environment, or set SLIPWAY_ENVIRONMENT")
        verb: Callable[[Environment, argparse.Namespace], int] = arguments.verb
        code = verb(_environment(name, arguments), arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as head, has what it wanted; Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Refused as refusal:
        if arguments.json:
            _print_json({"ok": False, "issues": refusal.issues})
        else:
            for issue in refusal.issues:
                _print(f"{issue['level']}: {issue['message']} [{issue['rule']}]", file=sys.stderr)
        return refusal.exit_code
    except SlipwayError as error:
        _print(f"slipway: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED


def _environment(name: str, arguments: argparse.Namespace) -> Environment:
    try:
        return Environment(name, region=arguments.region)
    except UsageError as error:
        # It is corrected where it was written.
        written = "--environment" if arguments.environment else "SLIPWAY_ENVIRONMENT"
        raise UsageError(re.sub(r"\Aregion(?=:)", "--region", re.sub(r"\Aenvironment(?=:)", written, str(error)))) from error


def _print_json(document: object) -> None:
    print(json.dumps(document, indent=2))


def _print(text: object, file: TextIO | None = None) -> None:
    """Prints text for people: visible characters, line feeds and tabs, regardless of its author."""
    print(plain_text(str(text)), file=file or sys.stdout, flush=True)


def _validate(env: Environment, a: argparse.Namespace) -> int:
    issues = env.validate(a.file, set=a.set)
    ok = not any(issue["level"] == "error" for issue in issues)
    if a.json:
        _print_json({"ok": ok, "issues": issues})
    for issue in () if a.json else issues:
        _print(f"{a.file}: {issue['level']}: {issue['message']} [{issue['rule']}]", file=sys.stderr)
    return 0 if ok else 1


def _plan(env: Environment, a: argparse.Namespace) -> int:
    plan = env.plan(a.file, set=a.set)
    _print_json(plan) if a.json else _print(plan)
    return 1 if plan["fits"] == "oom" else 0


def _confirm(env: Environment, a: argparse.Namespace) -> None:
    """Shows the plan of the run, where its model is known, and asks, as the command line does."""
    issues = env.validate(a.file, set=a.set)
    if any(issue["level"] == "error" for issue in issues):
        raise Refused(issues)
    with contextlib.suppress(Refused):
        _print(env.plan(a.file, set=a.set), file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError("launch: must be confirmed, got no interactive terminal; add --yes")
    _print("Launch? (y/N)", file=sys.stderr)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("launch: not confirmed; nothing was started")


def _launch(env: Environment, a: argparse.Namespace) -> int:
    if not a.yes:
        _confirm(env, a)
    run = env.launch(
        a.file,
        code=a.code,
        set=a.set,
        accept_unknown_price=a.accept_unknown_price,
        run_id=a.run_id,
        client_request_id=a.client_request_id,
        note=a.note,
        after=a.after,
        preemptible=a.preemptible,
    )
    status = run.wait() if a.wait else run.status()
    _print_json(status) if a.json else _print(status_text(status))
    return _RUN_FAILED if a.wait and status["state"] != "completed" else 0


def _status(env: Environment, a: argparse.Namespace) -> int:
    if a.events:
        return _events(env, a)
    if a.note is not None:
        return _note(env, a)
    run = env.run(a.run)
    status = run.wait() if a.wait else run.status()
    _print_json(status) if a.json else _print(status_text(status))
    return _RUN_FAILED if a.wait and status["state"] != "completed" else 0


def _list(env: Environment, a: argparse.Namespace) -> int:
    runs = env.runs(states=_states(a.state), tags=a.tag, search=a.search)
    if a.json:
        _print_json({"runs": runs})
    elif runs:
        _print(list_text(runs))
    else:
        _print("no matching runs" if a.state or a.tag or a.search else "no runs yet")
    return 0


def _states(text: str | None) -> list[str] | None:
    if text is None:
        return None
    states = [state.strip() for state in text.split(",")]
    known = get_args(get_type_hints(Status)["state"])
    for state in states:
        if state not in known:
            every = f"{', '.join(known[:-1])} and {known[-1]}"
            raise UsageError(f"--state: must be of {every}, got {state}; join several with a comma, such as queued,running")
    return states


def _note(env: Environment, a: argparse.Namespace) -> int:
    env.run(a.run).note(a.note)
    if a.json:
        _print_json({"runId": a.run, "note": a.note})
    else:
        _print(f"{a.run}: noted; python -m slipway list --search finds it", file=sys.stderr)
    return 0


def _logs(env: Environment, a: argparse.Namespace) -> int:
    for line in env.run(a.run).logs(follow=a.follow):
        _print(json.dumps(line) if a.json else plain_line(f"{line['at']} {line['host']} {line['message']}", _MAX_LINE))
    return 0


def _events(env: Environment, a: argparse.Namespace) -> int:
    for line in env.run(a.run).timeline():
        text = f"{line['at'][:19].replace('T', ' ')}  {line['what']:20}  {line['text']}"
        _print(json.dumps(line) if a.json else plain_line(text, _MAX_LINE))
    return 0


def _stop(env: Environment, a: argparse.Namespace) -> int:
    if a.release_pool:
        return _release(env, a)
    env.run(a.run).stop()
    if a.json:
        _print_json({"runId": a.run, "desiredState": "stop"})
    return 0


def _release(env: Environment, a: argparse.Namespace) -> int:
    answer = env.run(a.run).release()
    if a.json:
        _print_json(answer)
    else:
        what = "its warm pool was released" if answer["released"] else "has no warm pool; nothing to release"
        _print(f"{a.run}: {what}", file=sys.stderr)
    return 0


def _resume(env: Environment, a: argparse.Namespace) -> int:
    env.run(a.run).resume()
    if a.json:
        _print_json({"runId": a.run, "desiredState": "run"})
    return 0


def _report(env: Environment, a: argparse.Namespace) -> int:
    env.run(a.run).report(a.html)
    _print(f"wrote {a.html}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--environment", help="environment, environment/team, or a descriptor file (.json)")
    common.add_argument("--region", help="region; default: AWS_REGION, else the region of the AWS configuration")
    common.add_argument("--json", action="store_true", help="print one JSON document to stdout")
    parser = argparse.ArgumentParser(prog="python -m slipway", description="LLM training on Amazon SageMaker training jobs")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def add(name: str, does: str, verb: Callable[[Environment, argparse.Namespace], int], target: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=does, description=does, parents=[common])
        added.set_defaults(verb=verb)
        if target:
            added.add_argument(target, type=Path if target == "file" else str)
        if target == "file":
            added.add_argument("--set", action="append", metavar="PATH=VALUE", help="override an option of the run file (repeatable)")
        return added

    add("validate", "check a run file against every rule", _validate, "file")
    add("plan", "memory fit, step time, hours and dollars", _plan, "file")
    launch = add("launch", "upload the code and submit a run", _launch, "file")
    launch.add_argument("--code", help="folder of the training code; default: code.source of the run file")
    launch.add_argument("--run-id", help="run ID; default: <name>-<yymmddhhmmss>")
    launch.add_argument("--client-request-id", help="idempotency token: a second launch returns the first run")
    launch.add_argument("--accept-unknown-price", action="store_true", help="continue if the price is not known")
    launch.add_argument("--note", help="note of the run, which list --search also searches")
    launch.add_argument("--after", action="append", metavar="RUN", help="start after this run has completed: ID or latest:NAME")
    launch.add_argument("--preemptible", action="store_true", help="allow runs of higher priority to preempt this run")
    launch.add_argument("--yes", action="store_true", help="launch without a confirmation")
    launch.add_argument("--wait", action="store_true", help="follow the run until it ends")
    shown = add("status", "state, attempts, step and spend", _status, "run").add_mutually_exclusive_group()
    shown.add_argument("--wait", action="store_true", help="follow the run until it ends")
    shown.add_argument("--events", action="store_true", help="decisions, attempts, commits and notices")
    shown.add_argument("--note", help="remember what to find the run by")
    runs = add("list", "the runs of the team", _list, "")
    runs.add_argument("--state", help="only runs in these states, separated by commas")
    runs.add_argument("--tag", action="append", metavar="KEY[=VALUE]", help="only runs with this tag (repeatable)")
    runs.add_argument("--search", help="only runs whose ID, name, note, reason or tags contain this text")
    add("logs", "lines of all attempts and hosts", _logs, "run").add_argument("--follow", action="store_true")
    stop = add("stop", "save a checkpoint and stop", _stop, "run")
    stop.add_argument("--release-pool", action="store_true", help="instead, end the warm pool of its last job")
    add("resume", "continue from the newest committed checkpoint", _resume, "run")
    report = add("report", "one page about a run", _report, "run")
    report.add_argument("--html", metavar="FILE", required=True, help="write the page to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
