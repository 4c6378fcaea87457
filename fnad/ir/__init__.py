"""The typed SSA program, how it is built, printed, parsed and checked."""
