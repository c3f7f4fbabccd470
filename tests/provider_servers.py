"""Servers that enforce what each provider documents: paths, headers, refused parameters, error bodies.

Each answers `Paris` to a request that its documentation allows, and refuses any other in the provider's own words.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from .fake_server import Answer, FakeServer, Request, completion, error

KEY = "sk-planted-0123456789"
CHAT_PARAMS = {
    *("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "seed", "user"),
    *("reasoning_effort", "response_format", "logprobs", "stream"),
}
"""What chat completions take: https://platform.openai.com/docs/api-reference/chat/create, as far as tests send it."""


class ProviderServer(FakeServer):
    """A provider; `refusal` has its rules, `answer` what it says to a request that keeps them."""

    def refusal(self, request: Request) -> Answer | None:
        raise NotImplementedError

    def answer(self, request: Request) -> Any:
        return completion("Paris", model=request.model)

    def _reply_to(self, request: Request) -> Answer:
        said = self._script(request.body, request.nth) if self._script else None
        if said is None:
            said = self.refusal(request) or self.answer(request)
        return said if isinstance(said, Answer) else Answer(said)


def path_of(request: Request) -> str:
    return urlsplit(request.path).path


def query_of(request: Request) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.path).query))


def response(
    text: str = "Paris", *, status: str = "completed", output: list[Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return a response object: https://platform.openai.com/docs/api-reference/responses/object."""
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Lyon, surely?"}]}
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5-2025-08-07",
        "output": [thought, message] if output is None else output,
        "usage": {"input_tokens": 11, "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 27}},
        **fields,
    }


class OpenAIServer(ProviderServer):
    """OpenAI with the Responses API, and a reasoning model."""

    RESPONSE_PARAMS: ClassVar = {
        *("model", "input", "instructions", "max_output_tokens", "reasoning", "store", "text", "temperature", "top_p"),
        *("user", "metadata", "truncation"),
    }
    MOVED: ClassVar = {"messages": "input", "max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort"}

    def refusal(self, request: Request) -> Answer | None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return error(
                401, "Incorrect API key provided: sk-***.", type="invalid_request_error", code="invalid_api_key"
            )
        if path_of(request) == "/v1/chat/completions":
            # What the API says of models such as o1-pro.
            said = "This model is only supported in v1/responses and not in v1/chat/completions."
            return error(404, said, type="invalid_request_error", param="model")
        if path_of(request) != "/v1/responses":
            return error(404, f"Invalid URL (POST {path_of(request)})", type="invalid_request_error")
        return self.refused_parameter(request.body)

    def refused_parameter(self, body: Mapping[str, Any]) -> Answer | None:
        for name in body:
            if name in self.MOVED:
                said = f"Unsupported parameter: '{name}'. In the Responses API, this has moved to '{self.MOVED[name]}'."
                return error(400, said, code="unsupported_parameter", param=name)
            if name not in self.RESPONSE_PARAMS:
                return error(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        if "input" not in body:
            return error(400, "Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
        # https://platform.openai.com/docs/guides/latest-model: reasoning models take neither of the two.
        for name in ("temperature", "top_p"):
            if name in body:
                said = f"Unsupported parameter: '{name}' is not supported with this model."
                return error(400, said, type="invalid_request_error", param=name)
        if body.get("max_output_tokens", 16) < 16:
            said = (
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 8 instead."
            )
            return error(400, said, code="integer_below_min_value", param="max_output_tokens")
        effort = body.get("reasoning", {}).get("effort", "low")
        if effort not in ("minimal", "low", "medium", "high"):
            said = (
                f"Unsupported value: 'reasoning.effort' does not support '{effort}' with this model. "
                "Supported values are: 'minimal', 'low', 'medium', and 'high'."
            )
            return error(400, said, code="unsupported_value", param="reasoning.effort")
        return None

    def answer(self, request: Request) -> Any:
        return response()


class AzureServer(ProviderServer):
    """Azure OpenAI: https://learn.microsoft.com/azure/ai-foundry/openai/reference, and .../api-version-lifecycle."""

    DEPLOYMENTS: ClassVar = ("my-gpt", "my gpt/4")
    VERSIONS: ClassVar = ("2024-06-01", "2024-10-21")

    def __init__(self) -> None:
        super().__init__()
        self.tokens = {"token-1"}

    def refusal(self, request: Request) -> Answer | None:
        return self._bad_proof(request.headers) or self._bad_address(request)

    def _bad_proof(self, headers: Mapping[str, str]) -> Answer | None:
        """The key stands in `api-key`, a token of Entra's in `Authorization`; a key is no bearer token."""
        if "authorization" in headers:
            if headers["authorization"].removeprefix("Bearer ") in self.tokens:
                return None
            said = (
                "Unauthorized. Access token is missing, invalid, audience is incorrect "
                "(https://cognitiveservices.azure.com), or have expired."
            )
            return Answer({"statusCode": 401, "message": said}, 401)
        if headers.get("api-key") == KEY:
            return None
        return error(401, "Access denied due to invalid subscription key or wrong API endpoint.", code="401")

    def _bad_address(self, request: Request) -> Answer | None:
        path, query = path_of(request), query_of(request)
        no_deployment = error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound")
        if path in ("/openai/v1/chat/completions", "/openai/v1/responses"):
            if query.get("api-version", "preview") not in ("preview", "v1"):
                return error(400, "API version not supported", code="BadRequest")
            return None if request.model in self.DEPLOYMENTS else no_deployment
        name, _, rest = path.removeprefix("/openai/deployments/").partition("/chat/")
        if not path.startswith("/openai/deployments/") or rest != "completions" or "api-version" not in query:
            return error(404, "Resource not found", code="404")
        if query["api-version"] not in self.VERSIONS:
            # As a resource of its own kind answers: with the words for a path that it does not have.
            return error(400, "API version not supported", code="BadRequest")
        known = {each.replace(" ", "%20").replace("/", "%2F") for each in self.DEPLOYMENTS}
        return None if name in known else no_deployment

    def answer(self, request: Request) -> Any:
        return response() if path_of(request).endswith("/responses") else super().answer(request)


class AnthropicServer(ProviderServer):
    """Anthropic's layer for OpenAI's clients: https://platform.claude.com/docs/en/api/openai-sdk."""

    def __init__(self, *, workspace: str | None = None) -> None:
        super().__init__()
        self.workspace = workspace

    def refusal(self, request: Request) -> Answer | None:
        body = request.body
        if path_of(request) != "/v1/chat/completions":
            return self._error(404, "not_found_error", "Not Found")
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return self._error(401, "authentication_error", "invalid x-api-key")
        if self.workspace and request.headers.get("anthropic-workspace-id") != self.workspace:
            return self._error(400, "invalid_request_error", "anthropic-workspace-id: this key needs the header")
        if not request.model.startswith("claude-"):
            return self._error(404, "not_found_error", f"model: {request.model}")
        if body.get("n", 1) != 1:
            return self._error(400, "invalid_request_error", "n: must be exactly 1")
        if not all(message["role"] in ("system", "developer", "user", "assistant") for message in body["messages"]):
            return self._error(400, "invalid_request_error", "messages.0.role: unknown role")
        if "temperature" in body and "top_p" in body:
            said = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
            return self._error(400, "invalid_request_error", said)
        return None

    @staticmethod
    def _error(status: int, kind: str, message: str) -> Answer:
        return Answer({"error": {"code": kind, "message": message, "type": kind, "param": None}}, status)


class GeminiServer(ProviderServer):
    """Gemini's layer for OpenAI's clients: https://ai.google.dev/gemini-api/docs/openai; errors are google.rpc's."""

    TAKES = CHAT_PARAMS - {"seed", "user", "logprobs"}

    def refusal(self, request: Request) -> Answer | None:
        if path_of(request) != "/v1beta/openai/chat/completions":
            return Answer("", 404)
        if request.headers.get("authorization") != f"Bearer {KEY}":
            said = "API key not valid. Please pass a valid API key."
            return self.error(400, "INVALID_ARGUMENT", said, {"reason": "API_KEY_INVALID", "domain": "googleapis.com"})
        if not request.model.removeprefix("models/").startswith("gemini-"):
            return self.error(404, "NOT_FOUND", f"models/{request.model} is not found for API version v1main")
        odd = next((name for name in request.body if name not in self.TAKES), None)
        if odd:
            said = f'Invalid JSON payload received. Unknown name "{odd}": Cannot find field.'
            return self.error(400, "INVALID_ARGUMENT", said)
        roles = {message["role"] for message in request.body["messages"]}
        if roles - {"system", "user", "assistant", "tool"}:
            return self.error(400, "INVALID_ARGUMENT", "Invalid role: developer")
        return None

    @staticmethod
    def error(status: int, word: str, message: str, *details: Mapping[str, Any]) -> Answer:
        """Return an error of Google's, which is wrapped in a list."""
        return Answer([{"error": {"code": status, "message": message, "status": word, "details": details}}], status)


class BedrockServer(ProviderServer):
    """Bedrock's Mantle endpoint: https://docs.aws.amazon.com/bedrock/latest/userguide/models-api-compatibility.html."""

    REGION = "us-west-2"
    ACCESS_KEY = "AKIDEXAMPLE"
    SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

    def _record(self, path: str, headers: dict[str, str], raw: bytes, number: int) -> Request:
        request = super()._record(path, headers, raw, number)
        headers["test-body-sha256"] = hashlib.sha256(raw).hexdigest()
        return request

    def refusal(self, request: Request) -> Answer | None:
        proof = request.headers.get("authorization", "")
        if proof.startswith("AWS4-HMAC-SHA256 "):
            if not hmac.compare_digest(proof, self.signature(request)):
                said = "The request signature we calculated does not match the signature you provided."
                return Answer({"__type": "InvalidSignatureException", "message": said}, 403)
        elif proof != f"Bearer {KEY}":
            return Answer({"Message": "Authentication failed: Please make sure your API Key is valid."}, 403)
        if path_of(request) == "/v1/chat/completions":
            if request.model.startswith("openai.gpt-oss"):
                return None
            said = f"The model '{request.model}' does not support the '/v1/chat/completions' API"
            return error(400, said, type="invalid_request_error", code="validation_error")
        if path_of(request) == "/openai/v1/responses":
            return None if "input" in request.body else error(400, "missing input", code="validation_error")
        return Answer({"message": "Unable to determine service/operation name to be authorized"}, 404)

    def signature(self, request: Request) -> str:
        """Return the right `Authorization`: https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html."""
        headers = request.headers
        assert headers["x-amz-content-sha256"] == headers["test-body-sha256"]
        date = headers["x-amz-date"]
        scope = f"{date[:8]}/{self.REGION}/bedrock-mantle/aws4_request"
        names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        assert {"host", "x-amz-date"} <= set(names.split(";"))
        lines = [f"{name}:{headers[name]}" for name in names.split(";")]
        canonical = "\n".join(["POST", path_of(request), "", *lines, "", names, headers["x-amz-content-sha256"]])
        key = f"AWS4{self.SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signed = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
        return f"AWS4-HMAC-SHA256 Credential={self.ACCESS_KEY}/{scope}, SignedHeaders={names}, Signature={signed}"

    def answer(self, request: Request) -> Any:
        if path_of(request).endswith("/responses"):
            return response()
        # gpt-oss on Bedrock thinks aloud in the content.
        return completion("<reasoning>France, so...</reasoning>Paris", model=request.model)
