"""Training: heads, fine-tuning, distillation, calibration; requires torch."""
