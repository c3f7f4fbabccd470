"""The models: what completes a prompt, and how a spec finds it."""
