"""Inference: from texts to scores, with only numpy and onnxruntime."""
