"""The boxes of the acceptance list that no test of a single module says; `docs/acceptance.md` is the map."""
