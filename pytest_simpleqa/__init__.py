"""Factuality benchmarks as pytest items: every question is a test, a judge model grades every answer."""
