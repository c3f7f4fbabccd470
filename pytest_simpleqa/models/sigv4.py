"""Requests signed with AWS credentials (Signature Version 4), in place of a key."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from ..errors import ModelError
from ..secret import Secret
from .importing import error_line
from .threads import DaemonThreads

_SERVICES = {"bedrock-mantle": "bedrock-mantle", "bedrock-runtime": "bedrock", "bedrock-runtime-fips": "bedrock"}
"""What a signature calls the service, by the first part of the host's name."""


class Signature:
    """Signs each request; the credentials are those of `environment`, else what AWS's own chain finds.

    The chain (profiles, single sign-on, roles of the machine) is botocore's, which refreshes what expires.
    """

    def __init__(self, region: str, environment: Mapping[str, str]) -> None:
        self._region = region
        self._environment = environment
        self._threads = DaemonThreads(4)
        self._source: Any = None
        self._secrets: tuple[Secret, ...] = ()

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        # In a thread: the chain reads files, and may ask the machine's metadata service.
        headers: Mapping[str, str] = await self._threads.run(functools.partial(self._signed, url, body))
        return headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        return False

    def redact(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.redact(text)
        return text

    def close(self) -> None:
        self._threads.close()

    def _signed(self, url: str, body: bytes) -> dict[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        try:
            credentials = self._credentials()
        except Exception as error:
            raise ModelError("unauthorized", f"no AWS credentials: {error_line(error)}") from None
        if credentials is None:
            raise ModelError("unauthorized", "no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_PROFILE")
        self._secrets = tuple(Secret(value) for value in (credentials.secret_key, credentials.token) if value)
        content = {"Content-Type": "application/json", "X-Amz-Content-SHA256": hashlib.sha256(body).hexdigest()}
        request = AWSRequest(method="POST", url=url, data=body, headers=content)
        host = url.partition("://")[2]
        SigV4Auth(credentials, _SERVICES.get(host.partition(".")[0], "bedrock-mantle"), self._region).add_auth(request)
        return dict(request.headers.items())

    def _credentials(self) -> Any:
        """Return the credentials as they are now: access key, secret key and session token."""
        if self._source is None:
            from botocore.credentials import Credentials
            from botocore.session import Session

            said = self._environment
            key, secret = said.get("AWS_ACCESS_KEY_ID"), said.get("AWS_SECRET_ACCESS_KEY")
            if key and secret:
                self._source = Credentials(key, secret, said.get("AWS_SESSION_TOKEN") or None)
            else:
                self._source = Session(profile=said.get("AWS_PROFILE") or None).get_credentials()
        return None if self._source is None else self._source.get_frozen_credentials()
