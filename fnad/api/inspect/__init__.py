"""Programs, their stages and paths as text."""
