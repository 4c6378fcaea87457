"""Programs that leave the process: native functions by address, object files, C and Python sources.

They need nothing of fnad when they run. So they have no threads, no checks for Ctrl-C and no calls of Python.
"""
