"""Labelled data: datasets, their split, and readers of every format."""
