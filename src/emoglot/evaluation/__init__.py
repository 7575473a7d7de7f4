"""Evaluation of models: metrics, thresholds per language, evidence per language."""
