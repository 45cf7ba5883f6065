"""Where S3 answers: the endpoint variables of the AWS SDKs first, then the region's own name."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional
from urllib.parse import urlsplit


class Endpoint(NamedTuple):
    """`host` as it is connected to and signed; `prefix` goes before the key (path style: `/bucket`)."""

    tls: bool
    host: str
    prefix: str


def region_of(environ: Mapping[str, str]) -> str:
    """The region to sign for. SageMaker sets AWS_REGION in every container."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def own_endpoint(environ: Mapping[str, str]) -> Optional[str]:
    """The address that is to be used instead of the region's; None without one."""
    return environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or None


def endpoint_of(bucket: str, region: str, environ: Mapping[str, str]) -> Endpoint:
    """Path style with an own endpoint (emulators, VPC endpoints) and for buckets with dots; else the bucket in the host name."""
    own = own_endpoint(environ)
    if own:
        parts = urlsplit(own)
        return Endpoint(parts.scheme == "https", parts.netloc, parts.path.rstrip("/") + "/" + bucket)
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    if "." in bucket:
        return Endpoint(True, "s3.%s.%s" % (region, suffix), "/" + bucket)
    return Endpoint(True, "%s.s3.%s.%s" % (bucket, region, suffix), "")
