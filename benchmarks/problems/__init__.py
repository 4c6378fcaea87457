"""One file a problem: its docstring says what is computed, `cases()` yields what is measured."""
