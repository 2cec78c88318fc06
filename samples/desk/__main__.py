"""Serves the desk from one process."""

from samples.desk import brain

brain.serve()
