"""Texts: normalisation and language identification."""
