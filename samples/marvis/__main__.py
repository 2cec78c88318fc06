"""Serves Marvis from one process."""

from samples.marvis import brain

brain.serve()
