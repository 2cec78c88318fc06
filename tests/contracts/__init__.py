"""Promises that several implementations keep, as classes which each one's tests inherit."""
