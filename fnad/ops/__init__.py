"""The primitives, one family a file, each declared in one place with all its rules.

A family is imported by whoever needs it, all of them with `fnad.ops.catalogue`.
"""
