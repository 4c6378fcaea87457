"""From a program to results: derived programs, execution, and the traces that later calls use again."""
