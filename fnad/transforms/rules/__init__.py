"""The tables of rules, one family a file."""
