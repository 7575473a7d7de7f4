"""Research: the experiments of the paper and hyperparameter search."""
