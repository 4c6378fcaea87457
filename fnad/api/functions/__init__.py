"""The functions that users call, a file for each or for each group."""
