"""Languages of texts: what users call them, and which one a text is written in."""
