"""Control flow: the primitives whose equations have regions, one a file, each with all its rules.

Their derivatives are programs made by the transforms of their regions, which is why they live above `fnad.transforms`,
not among the other primitives. A file is imported by whoever needs it, all of them with `fnad.control.catalogue`.
"""
