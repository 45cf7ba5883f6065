"""What the Python client says of calls that fail: the command line's words."""

import re
import socketserver
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "clients/python/src"))
exceptions = pytest.importorskip("botocore.exceptions")

from slipway._service_errors import has_no_credentials, service_error  # noqa: E402
from slipway.environment import Environment, _put  # noqa: E402
from slipway.errors import ServiceError, UsageError  # noqa: E402
from slipway.run import _patiently  # noqa: E402

WORDS = (ROOT / "lib/cli/aws-errors.ts").read_text()


def refused(code: str, message: str = "", status: int = 400) -> Any:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Ask")


@pytest.mark.parametrize(
    ("error", "begin", "got", "end"),
    [
        (refused("AccessDenied", "you may not"), "must be permitted", "you may not", "ask the platform team for the permission"),
        (refused("AccessDeniedException", "no"), "must be permitted", "no", "ask the platform team for the permission"),
        (refused("403", "", 403), "must be permitted", "403", "ask the platform team for the permission"),
        (refused("ExpiredToken", "old", 403), "must have valid AWS credentials", "An error", "sign in, or set AWS_PROFILE"),
        (exceptions.NoCredentialsError(), "must have valid AWS credentials", "Unable to locate", "sign in, or set AWS_PROFILE"),
        (exceptions.EndpointConnectionError(endpoint_url="https://x"), "must reach the service", "EndpointConnectionError",
         "check the network, the region, HTTPS_PROXY and AWS_ENDPOINT_URL"),
        (exceptions.ReadTimeoutError(endpoint_url="https://x"), "must reach the service", "ReadTimeoutError",
         "check the network, the region, HTTPS_PROXY and AWS_ENDPOINT_URL"),
        (exceptions.SSLError(endpoint_url="https://x", error="self-signed"), "must present a certificate that is trusted here",
         "SSL validation failed", "name a file with the certificates of your proxy in AWS_CA_BUNDLE"),
        (refused("NoSuchBucket"), "must name a bucket that exists", "one that does not", "check its name"),
        (refused("SlowDown", "too much", 503), "failed", "SlowDown: too much", "try again"),
        (exceptions.BotoCoreError(), "failed", "An unspecified error", "try again"),
    ],
)  # fmt: skip
def test_says_what_must_hold_what_came_and_what_to_do(error: Exception, begin: str, got: str, end: str) -> None:
    found = service_error("reading s3://b/k", error, "; left something")
    assert isinstance(found, ServiceError)
    text = str(found)
    assert text.startswith(f"reading s3://b/k: {begin}, got {got}") and text.endswith(f"; left something; {end}")
    assert begin in WORDS and end in WORDS, "the command line says it otherwise"


def test_credentials_are_told_by_the_codes_of_the_command_line() -> None:
    listed = re.search(r"const CREDENTIALS = \[(.*?)\];", WORDS, re.DOTALL)
    # The first two are errors of the SDK for JavaScript alone.
    codes = set(re.findall(r"'(\w+)'", listed[1] if listed else "")) - {"CredentialsProviderError", "TokenProviderError"}
    assert len(codes) > 5
    assert all(has_no_credentials(refused(code)) for code in codes)
    assert not has_no_credentials(refused("SlowDown")) and not has_no_credentials(None)


@pytest.mark.parametrize(("code", "calls"), [("ExpiredToken", 1), ("SlowDown", 10)])
def test_waits_for_what_passes_by_itself_alone(code: str, calls: int) -> None:
    made = []

    def call() -> None:
        made.append(1)
        try:
            raise refused(code)
        except exceptions.ClientError as error:
            raise service_error("asking", error) from error

    with pytest.raises(ServiceError, match=code):
        _patiently(call, 0)
    assert len(made) == calls


def said(folder: Path, *words: str, config: str = "", **variables: str) -> tuple[int, str]:
    """Exit code and error of `python -m slipway list` in an environment with these variables alone."""
    (folder / "config").write_text(config)
    base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT / "clients/python/src"), "AWS_MAX_ATTEMPTS": "1",
            "AWS_CONFIG_FILE": str(folder / "config"), "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}  # fmt: skip
    command = [sys.executable, "-m", "slipway", "list", "--environment", "research/nlp", *words]
    done = subprocess.run(command, env=base | variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


REACHED = (3, "slipway: reading /slipway/environments/research/nlp: must reach the service, got EndpointConnectionError; "
              "check the network, the region, HTTPS_PROXY and AWS_ENDPOINT_URL")  # fmt: skip
PROFILE = (3, "slipway: reading the AWS configuration: must have valid AWS credentials, got profile typo (AWS_PROFILE): The config profile "
              "(typo) could not be found; sign in with it, or name one of aws configure list-profiles")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "variables", "expected"),
    [
        ([], {"AWS_REGION": "us-west-2"}, REACHED),
        ([], {"AWS_DEFAULT_REGION": "us-west-2"}, REACHED),
        ([], {"config": "[default]\nregion = us-west-2\n"}, REACHED),
        (["--region", "us-west-2"], {}, REACHED),
        ([], {}, (2, "slipway: --region: must be given, got nothing; name a region, or set AWS_REGION")),
        ([], {"AWS_REGION": "us west"}, (2, "slipway: --region: must be a region such as us-west-2, got us west; correct its name")),
        ([], {"AWS_REGION": "us-west-2", "AWS_PROFILE": "typo"}, PROFILE),
        ([], {"AWS_PROFILE": "typo"}, PROFILE),
        ([], {"config": "no section\n", "AWS_REGION": "us-west-2"}, None),
        ([], {"AWS_ENDPOINT_URL": "nowhere", "AWS_REGION": "us-west-2"}, None),
    ],
)  # fmt: skip
def test_finds_region_and_profile_as_the_command_line(
    tmp_path: Path, words: list[str], variables: dict[str, str], expected: "tuple[int, str] | None"
) -> None:
    code, error = said(tmp_path, *words, **variables)
    assert "\n" not in error, "a traceback"
    if expected:
        assert (code, error) == expected
    assert code in (2, 3) and error.startswith("slipway: ")


def test_an_error_names_the_variable_of_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    text = str(service_error("reading x", exceptions.NoCredentialsError()))
    assert text.startswith("reading x: must have valid AWS credentials, got profile mine (AWS_PROFILE): Unable to locate credentials")
    assert text.endswith("; sign in with it, or name one of aws configure list-profiles")


@pytest.mark.parametrize("text", ["[]", "{}", '{"name": "lab"}', "no json"])
def test_a_file_that_is_no_descriptor_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "environment.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"environment: must be a descriptor in JSON, got .*environment\.json"):
        Environment(str(file), session=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [b"", b"no status line\r\n\r\n", b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"])
def test_an_upload_that_breaks_off_is_tried_again_and_then_fails(answer: bytes) -> None:
    calls: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            calls.append(self.rfile.readline())
            while self.rfile.readline().strip():
                pass
            self.rfile.read(4)
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        upload = {"url": f"http://127.0.0.1:{server.server_address[1]}/x", "headers": {}, "key": "runs/code.tar.gz"}
        with pytest.raises(ServiceError, match=r"uploading runs/code\.tar\.gz: failed 3 times, got .+; try again"):
            _put(upload, b"code")
        server.shutdown()
    assert len(calls) == 3
