"""`docker` in a build: login, pull, build and push, as far as they can fail without building anything.

- Docker runs only in privileged mode: https://docs.aws.amazon.com/codebuild/latest/userguide/sample-docker.html
- Pulling from and pushing to a private registry requires a login.
- build: the Dockerfile and the files that it copies must be in the context. No instruction runs.
- push: makes the same calls to ECR as Docker, with the credentials of the build, so that a missing permission is detected
  (https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-push-iam.html).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import sys
from pathlib import Path

import botocore.exceptions

from slipway_build.calls import client, end

STATE = Path(os.environ.get("HOME", ".")) / ".slipway-docker.json"
REGISTRY = re.compile(r"^(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?$")


def state() -> dict:
    return json.loads(STATE.read_text()) if STATE.exists() else {"logins": [], "images": {}}


def split(image: str) -> tuple[str, str, str]:
    """Registry, repository and tag of an image."""
    registry, _, rest = image.rpartition("@")[2].partition("/") if "@" not in image else image.split("@")[0].partition("/")
    repository, _, tag = rest.partition(":")
    return registry, repository, tag or "latest"


def require_login(registry: str) -> None:
    if REGISTRY.match(registry) and registry not in state()["logins"]:
        end(f"Error response from daemon: no basic auth credentials for {registry}")


def login(options: argparse.Namespace) -> None:
    password = sys.stdin.read().strip() if options.password_stdin else ""
    if not password or options.username != "AWS":
        end("Error: Cannot perform an interactive login from a non TTY device")
    found = state()
    STATE.write_text(json.dumps({**found, "logins": [*found["logins"], options.registry]}))
    print("Login Succeeded")


def pull(options: argparse.Namespace) -> None:
    registry, repository, tag = split(options.image)
    require_login(registry)
    place = REGISTRY.match(registry)
    if place and "@" not in options.image and is_own(place) and not is_pushed(place["region"], repository, tag):
        end(f"Error response from daemon: manifest for {options.image} not found: manifest unknown")
    keep(options.image, hashlib.sha256(options.image.encode()).hexdigest())
    print(options.image)


def is_own(place: re.Match[str]) -> bool:
    """Whether a registry is that of the build's account; images of other registries are assumed to exist."""
    return client("sts", place["region"]).get_caller_identity()["Account"] == place["account"]


def is_pushed(region: str, repository: str, tag: str) -> bool:
    try:
        found = client("ecr", region).batch_get_image(repositoryName=repository, imageIds=[{"imageTag": tag}])
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
        end(f"Error response from daemon: {error}")
    return bool(found["images"])


def keep(image: str, content: str) -> None:
    """Records that the build's machine has this image from now on."""
    found = state()
    STATE.write_text(json.dumps({**found, "images": {**found["images"], image: content}}))


def content_of(image: str) -> str:
    content = state()["images"].get(image)
    if content is None:
        end(f"Error response from daemon: No such image: {image}")
    return content


def tag_image(options: argparse.Namespace) -> None:
    keep(options.target, content_of(options.image))


def inspect(options: argparse.Namespace) -> None:
    repository = options.image.partition("@")[0].rpartition(":")[0] or options.image
    digest = f"{repository}@sha256:{hashlib.sha256(content_of(options.image).encode()).hexdigest()}"
    print(options.format.replace("{{index .RepoDigests 0}}", digest) if options.format else json.dumps([{"RepoDigests": [digest]}]))


def build(options: argparse.Namespace) -> None:
    context = Path(options.context)
    dockerfile = Path(options.file) if options.file else context / "Dockerfile"
    if not dockerfile.is_file():
        end(f"ERROR: failed to read dockerfile: open {dockerfile}: no such file or directory")
    text = dockerfile.read_text(encoding="utf-8")
    for source in copied(text):
        if not any(context.glob(source.lstrip("/").rstrip("/") or "*")):
            end(f'ERROR: failed to compute cache key: "/{source}": not found')
    for tag in options.tag:
        keep(tag, hashlib.sha256("\0".join([text, *sorted(options.build_arg)]).encode()).hexdigest())
    print(f"naming to {', '.join(options.tag)}")


def copied(text: str) -> list[str]:
    """Source paths that COPY and ADD read from the context."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    found: list[str] = []
    for line in lines:
        name, _, rest = line.strip().partition(" ")
        if name.upper() not in ("COPY", "ADD") or "--from=" in rest or rest.lstrip().startswith("<<"):
            continue
        words = [word for word in shlex.split(rest) if not word.startswith("--")]
        found += [word for word in words[:-1] if "://" not in word and "$" not in word]
    return found


def push(options: argparse.Namespace) -> None:
    registry, repository, tag = split(options.image)
    content = state()["images"].get(options.image)
    if content is None:
        end(f"An image does not exist locally with the tag: {options.image}")
    require_login(registry)
    place = REGISTRY.match(registry)
    if place is None:
        end(f"denied: requested access to {registry} is denied")
    try:
        digest = upload(client("ecr", place["region"]), repository, tag, content)
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
        end(f"denied: {error}")
    print(f"{tag}: digest: {digest} size: {len(content)}")


def upload(ecr, repository: str, tag: str, content: str) -> str:
    layer = content.encode()
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    ecr.batch_check_layer_availability(repositoryName=repository, layerDigests=[digest])
    found = ecr.initiate_layer_upload(repositoryName=repository)
    part = {"partFirstByte": 0, "partLastByte": len(layer) - 1, "layerPartBlob": layer}
    ecr.upload_layer_part(repositoryName=repository, uploadId=found["uploadId"], **part)
    ecr.complete_layer_upload(repositoryName=repository, uploadId=found["uploadId"], layerDigests=[digest])
    config = {"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(layer), "digest": digest}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "config": config, "layers": []}
    pushed = ecr.put_image(repositoryName=repository, imageManifest=json.dumps(manifest), imageTag=tag)
    return pushed["image"]["imageId"]["imageDigest"]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="docker", allow_abbrev=False)
    verbs = made.add_subparsers(required=True)
    verb = verbs.add_parser("login")
    verb.add_argument("--username", "-u")
    verb.add_argument("--password-stdin", action="store_true")
    verb.add_argument("registry")
    verb.set_defaults(run=login)
    for name, run in (("pull", pull), ("push", push)):
        verb = verbs.add_parser(name)
        verb.add_argument("--quiet", "-q", action="store_true")
        verb.add_argument("image")
        verb.set_defaults(run=run)
    verb = verbs.add_parser("tag")
    verb.add_argument("image")
    verb.add_argument("target")
    verb.set_defaults(run=tag_image)
    verb = verbs.add_parser("image").add_subparsers(required=True).add_parser("inspect")
    verb.add_argument("--format", "-f")
    verb.add_argument("image")
    verb.set_defaults(run=inspect)
    verb = verbs.add_parser("build")
    verb.add_argument("--file", "-f")
    verb.add_argument("--quiet", "-q", action="store_true")
    verb.add_argument("--platform")
    verb.add_argument("--label", action="append", default=[])
    for name in ("--build-arg", "--tag", "-t"):
        verb.add_argument(name, action="append", default=[], dest="tag" if name == "-t" else None)
    verb.add_argument("context")
    verb.set_defaults(run=build)
    return made


def main(arguments: list[str]) -> None:
    """Runs one command."""
    if os.environ.get("SLIPWAY_DOCKER") != "privileged":
        end("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
    options = parser().parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
