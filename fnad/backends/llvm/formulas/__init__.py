"""Elementary and special functions as instructions, for f64 and f32, on vectors of any width and on GPUs."""
