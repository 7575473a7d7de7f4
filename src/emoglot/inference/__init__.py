"""From texts to scores: what predicting needs, with numpy and onnxruntime alone."""
