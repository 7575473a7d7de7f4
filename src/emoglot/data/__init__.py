"""Labelled data: datasets, their splits, and readers for all formats."""
