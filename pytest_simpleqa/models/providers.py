"""The one table of known providers: where each is, and which variables hold its key and address."""

from __future__ import annotations

from dataclasses import dataclass

AZURE_API_VERSION = "2024-10-21"
"""The newest dated version of Azure OpenAI's chat completions that is generally available."""
AZURE_V1 = ("v1", "preview", "latest")
"""Words in place of a date that mean Azure's API without dates."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A service with an OpenAI-compatible chat endpoint."""

    name: str
    base_url: str | None
    """None where every customer has an address of their own."""
    key_variables: tuple[str, ...] = ()
    """Where the key may stand, the first that is set counts."""
    url_variable: str | None = None
    """What overrides `base_url`."""
    needs_key: bool = True
    needs_address: bool = True
    """False where a package knows the address."""
    token_variable: str | None = None
    """A bearer token in place of a key; wins over it, as in the OpenAI SDK."""
    version_variable: str | None = None
    region_variables: tuple[str, ...] = ()
    """Where the word for `{region}` in the address may stand."""
    responses_url: str | None = None
    """The address of the Responses API, where it is another one than `base_url`."""
    signs: bool = False
    """Whether AWS credentials sign the requests where there is no key."""


def _local(name: str, base_url: str, url_variable: str, key_variable: str) -> Provider:
    return Provider(name, base_url, (key_variable,), url_variable, needs_key=False)


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
        Provider(
            "azure",
            None,
            ("AZURE_OPENAI_API_KEY",),
            "AZURE_OPENAI_ENDPOINT",
            token_variable="AZURE_OPENAI_AD_TOKEN",  # noqa: S106  the name of a variable, no token
            version_variable="OPENAI_API_VERSION",
        ),
        Provider("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY", "QWEN_API_KEY")),
        Provider("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
        Provider("minimax", "https://api.minimax.io/v1", ("MINIMAX_API_KEY",)),
        Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
        Provider("anthropic", "https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",)),
        Provider(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ),
        # Chat at /v1, the Responses API at /openai/v1: https://docs.aws.amazon.com/bedrock/latest/userguide/
        # inference-chat-completions-mantle.html, and what the openai package takes for its Bedrock client.
        Provider(
            "bedrock",
            "https://bedrock-mantle.{region}.api.aws/v1",
            ("AWS_BEARER_TOKEN_BEDROCK",),
            "AWS_BEDROCK_BASE_URL",
            region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
            responses_url="https://bedrock-mantle.{region}.api.aws/openai/v1",
            signs=True,
        ),
        Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
        Provider("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
        Provider("together", "https://api.together.ai/v1", ("TOGETHER_API_KEY",)),
        Provider("litellm", None, needs_key=False, needs_address=False),
        _local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_HOST", "OLLAMA_API_KEY"),
        _local("vllm", "http://127.0.0.1:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"),
        _local("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY"),
    )
}
