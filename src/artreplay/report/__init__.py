"""The page of the reproduction, from stored results: pure functions, nothing is run again."""
