"""OpenAI Evals: whoever has a registry of them runs it here."""
