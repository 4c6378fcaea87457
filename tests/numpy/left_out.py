"""Functions of NumPy's that have no rule, by the reason; and remarks on those that have one."""

LEFT_OUT = {
    "files, text and printing": {
        *("array2string", "array_repr", "array_str", "base_repr", "binary_repr", "format_float_positional"),
        *("format_float_scientific", "fromfile", "fromregex", "fromstring", "genfromtxt", "load", "loadtxt", "save"),
        *("savetxt", "savez", "savez_compressed", "get_printoptions", "set_printoptions", "printoptions", "typename"),
    },
    "about NumPy itself": {
        *("geterr", "geterrcall", "getbufsize", "get_include", "info", "seterr", "seterrcall", "setbufsize"),
        *("show_config", "show_runtime", "test"),
    },
    "about dtypes and shapes, which are known while tracing": {
        *("broadcast_shapes", "isdtype", "issubdtype", "isscalar", "iterable", "mintypecode", "promote_types"),
    },
    "made of sizes alone": {
        *("bartlett", "blackman", "diag_indices", "hamming", "hanning", "mask_indices"),
        *("fftfreq", "rfftfreq"),
        *("chebgauss", "leggauss", "laggauss", "hermgauss", "hermegauss", "chebpts1", "chebpts2"),
    },
    "calls a function of the user's, which takes traced values by itself": {
        *("fromfunction", "frompyfunc", "chebinterpolate"),
    },
    "drops zeros at the end, which are not known while tracing": {
        *("polytrim", "chebtrim", "legtrim", "lagtrim", "hermtrim", "hermetrim"),
    },
    "dates and times": {"busday_count", "busday_offset", "datetime_as_string", "datetime_data", "is_busday", "isnat"},
    "bits and memory": {
        *("asarray_chkfinite", "from_dlpack", "frombuffer", "isfortran", "nested_iters", "packbits"),
        *("shares_memory", "unpackbits"),
    },
    "makes a matrix, a class apart from arrays": {"asmatrix", "bmat"},
    "follows rules of another function": {"row_stack"},
}

DEPENDS_ON_VALUES = (
    *("argwhere", "flatnonzero", "nonzero", "trim_zeros"),
    *("intersect1d", "setdiff1d", "setxor1d", "union1d"),
    *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
)

NOTES = {
    "roots": "complex, also where all are real",
    "polymul": "leading zeros of a traced vector are kept",
    "polydiv": "leading zeros of the remainder are kept",
    "interp": "at a point of `xp` the mean of both slopes",
    "poly": "not of complex roots",
    "asfortranarray": "a copy or not is not known",
    "ascontiguousarray": "a copy or not is not known",
    "require": "a copy or not is not known",
    **dict.fromkeys(DEPENDS_ON_VALUES, "the shape depends on values: a path, and refused in loops"),
}
