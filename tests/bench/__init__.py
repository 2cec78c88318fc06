"""What bigbrain costs, beside its baselines of the same run: `python -m tests.bench`. Figures are ratios, not tests."""
