"""Searches for settings with Optuna: the space, the study, and the plots people look at."""
