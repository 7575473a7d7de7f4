"""The service: a model over HTTP, with a web page and clients."""
