"""A brain of flows and agents, served as a model."""
