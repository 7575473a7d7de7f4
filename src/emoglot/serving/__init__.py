"""The service: many clients, one model, answers over HTTP, and a page."""
