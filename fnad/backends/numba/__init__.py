"""The Numba backend: readable Python source from loop nests, and the runtime it stands on, compiled to native code."""
