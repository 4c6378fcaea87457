"""From programs to loop nests: fusion, buffers, and the scalar statements of each nest."""
