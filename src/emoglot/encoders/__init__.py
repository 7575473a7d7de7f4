"""Encoders: map a text to one vector per token."""
