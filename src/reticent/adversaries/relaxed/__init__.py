"""The attacker who knows the training data, and not the direction in which the target moves the result."""
