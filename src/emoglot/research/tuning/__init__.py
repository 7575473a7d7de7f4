"""Searches for settings with Optuna: the space, the study, and its plots."""
