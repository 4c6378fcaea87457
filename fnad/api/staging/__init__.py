"""From the arguments of a call to a program: leaves, traces, regions, Python loops."""
