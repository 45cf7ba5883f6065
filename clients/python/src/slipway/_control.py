"""Calls of a team's control alias."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ._service_errors import is_denied, service_error
from .errors import Refused, ServiceError, UsageError


class Control:
    """Invokes the control alias of one environment and team."""

    def __init__(self, client: Any, descriptor: dict[str, Any]) -> None:
        self._client = client
        self._name = f"{descriptor['name']}/{descriptor['team']}"
        alias = descriptor.get("controlAliasArn")
        if not alias:
            raise UsageError(f"environment: must have a launcher, got {self._name} without controlAliasArn; deploy it with one")
        self._alias = str(alias)
        self._audit: str | None = descriptor.get("auditAliasArn")
        self._is_denied = False

    def call(self, action: str, **payload: Any) -> dict[str, Any]:
        """The answer to one request. Raises Refused with its issues, or ServiceError."""
        return self.ask({"action": action, **{key: value for key, value in payload.items() if value is not None}})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """`call` with a request in which None means something."""
        try:
            response = self._invoke(request["action"], json.dumps(request).encode())
            text = response["Payload"].read().decode()
        except (BotoCoreError, ClientError) as error:
            raise service_error(f"calling the launcher of {self._name}", error) from error
        if response.get("FunctionError"):
            raise ServiceError(f"the launcher of {self._name}: failed, got {_message(text)}; see its log")
        answer: dict[str, Any] = json.loads(text)
        issues = answer.get("issues", [])
        if not answer.get("ok") and any(issue["rule"] == "logs/throttled" for issue in issues):
            raise ServiceError("\n".join(issue["message"] for issue in issues))
        if not answer.get("ok"):
            raise Refused(issues)
        return answer

    def _invoke(self, action: str, payload: bytes) -> Any:
        """Invokes the launcher, or, for a question of a caller without permission to launch, the alias of auditors."""
        audit = self._audit if action in _READ_ACTIONS else None
        if audit and self._is_denied:
            return self._client.invoke(FunctionName=audit, Payload=payload)
        try:
            return self._client.invoke(FunctionName=self._alias, Payload=payload)
        except ClientError as denied:
            if not audit or not is_denied(denied):
                raise
            try:
                response = self._client.invoke(FunctionName=audit, Payload=payload)
            except ClientError as error:
                # Callers who may use neither ask for the right to launch: the message names that alias.
                raise (denied if is_denied(error) else error) from None
            self._is_denied = True
            return response


#: What changes nothing and reads no run file (`readRequestSchema` of the launcher).
_READ_ACTIONS = ("status", "list", "events", "logs")


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["errorMessage"])
    except (ValueError, KeyError, TypeError):
        return text
