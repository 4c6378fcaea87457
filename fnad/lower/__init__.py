"""From programs to loop nests: fusion, buffers, and the scalar expressions of each nest."""
