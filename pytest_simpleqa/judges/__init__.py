"""Judges: what turns a question and a predicted answer into a verdict."""
