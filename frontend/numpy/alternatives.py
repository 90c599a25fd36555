"""What to write instead of NumPy functions that are not compiled, chosen by what they mean.

Functions that are spelt alike compute different things (nanmedian is no nanmean), so nothing here
is found by spelling: each family names the functions that do its work inside a compiled function,
or says why the call belongs outside.

Invariants: a name that an advice writes with np., tm. or a dot before it exists and is
supported; a test looks. Functions without an entry belong before or after the compiled function.
Not here: the handlers (dispatch.py lists them), errors (dispatch.py raises them).
"""

from __future__ import annotations

from collections.abc import Mapping

# One advice for all functions of a row, which say what they are about.
_COUNTED_BY_DATA = {
    "argwhere nonzero flatnonzero extract compress":
        "how many elements come out is data: use np.where with three arguments, a reduction with "
        "where=mask, or np.count_nonzero for their number",
    "trim_zeros":
        "how many elements stay is data: set what is not wanted to a value of its own by np.where",
    "unique unique_all unique_counts unique_inverse unique_values":
        "how many elements come out is data: tm.unique(x, size=n) gives back n and fills up",
    "union1d": "use tm.unique(np.concatenate((a, b)), size=n), which gives back n and fills up",
    "isin": "use np.any(a[:, None] == b, axis=1), or np.searchsorted in a sorted b",
    "intersect1d setdiff1d setxor1d":
        "how many elements come out is data: np.any(a[:, None] == b, axis=1) is a mask of those "
        "of a that are in b, and np.where takes it",
}  # fmt: skip
_STATISTICS = {
    "nanmedian nanpercentile nanquantile":
        "use np.median, np.percentile or np.quantile where no element is NaN (np.isnan finds "
        "them); np.sort puts NaN last, and np.count_nonzero(~np.isnan(x)) counts what is before it",
    "histogram2d histogramdd":
        "number the cells, such as i * n + j with i and j from np.searchsorted in the edges, and "
        "count them with np.bincount(cells, minlength=m)",
    "interp":
        "find the place of x with np.searchsorted and interpolate between the neighbours there",
    "unwrap": "take np.diff, bring it into -pi to pi with np.mod, and sum it with np.cumsum",
}  # fmt: skip
_BY_PYTHON = {
    "apply_along_axis apply_over_axes":
        "functions on whole arrays take axis= (np.sum, np.max, np.sort, np.cumsum), and "
        "broadcasting does the rest",
    "vectorize frompyfunc":
        "write the function on whole arrays: operators and np. functions work on all elements at "
        "once, np.where chooses between two results",
    "nditer nested_iters ndenumerate":
        "write it on whole arrays, or use tm.fori_loop and index the array",
    "iterable": "every array of at least one axis can be iterated over: ask np.ndim",
    "isscalar": "ask np.ndim(x) == 0",
}  # fmt: skip
_INDICES = {
    "choose": "use np.select, np.where, or np.take_along_axis on np.stack of the choices",
    "ix_": "index with arrays that broadcast: x[np.expand_dims(i, 1), j]",
    "diag_indices diag_indices_from":
        "index with the same numbers twice: i = np.arange(n), then x[i, i]; np.diagonal reads it",
    "tril_indices tril_indices_from":
        "use np.tril, or np.where with np.tri(n, m) as its mask, which keeps the shape",
    "triu_indices triu_indices_from mask_indices":
        "use np.triu, or np.where with np.tri(m, n).T as its mask, which keeps the shape",
    "ravel_multi_index": "compute it, such as i * columns + j; np.divmod is the way back",
    "unravel_index": "compute it: np.divmod(place, columns)",
}  # fmt: skip
_SHAPES = {
    "dsplit": "use np.split or np.array_split with axis=2",
    "row_stack": "use np.vstack",
    "bmat": "use np.block",
    "asmatrix matrix": "use plain arrays of rank 2 with @, or np.matmul",
    "asfortranarray require":
        "compiled code needs no memory order: leave it out, or transpose with np.transpose",
    "isfortran": "ask x.flags inside, or call it before the compiled function",
    "asarray_chkfinite": "use np.asarray, and np.isfinite(x).all() for the question",
    "real_if_close": "whether the result is complex is data: use np.real",
    "array_equiv": "use np.array_equal after np.broadcast_arrays",
    "shares_memory may_share_memory": "ask before the compiled function, which gets the arrays",
}  # fmt: skip
_TYPES = {
    "common_type promote_types mintypecode": "use np.result_type",
    "issubdtype isdtype": "compare dtypes themselves, x.dtype == np.float64, or ask np.can_cast",
    "typename": "np.result_type(x), or x.dtype, says it",
    "isnat busday_count busday_offset is_busday datetime_as_string datetime_data":
        "dates cannot be compiled: call it before, and pass integers or a mask",
}  # fmt: skip
_NUMERIC = {
    "einsum_path": "np.einsum finds an order of its own; call einsum_path before",
    "polymul": "use np.convolve of the coefficients",
    "polyadd polysub": "pad the shorter one with np.pad, then add or subtract",
    "polyder polyint":
        "multiply the coefficients by the exponents, or divide by them: np.arange gives those",
    "poly1d": "use np.polyval(coefficients, x)",
    "polyfit roots poly polydiv":
        "call it before or after the compiled function; np.polyval evaluates polynomials inside",
    "hanning hamming blackman bartlett kaiser":
        "make the window before and pass it, or write its formula with np.cos(np.arange(n))",
    "i0": "call it before or after the compiled function: Bessel functions are not compiled",
    "packbits":
        "shift and sum: np.sum(x.astype(np.uint8) << np.arange(8, dtype=np.uint8)[::-1], axis=-1)",
    "unpackbits": "shift and mask: x[..., None] >> np.arange(8, dtype=np.uint8)[::-1] & 1",
    "seterr geterr seterrcall geterrcall setbufsize getbufsize":
        "call it before the compiled function, which never warns",
    "as_strided": "use slices, np.reshape and np.broadcast_to, or gather with np.take",
}  # fmt: skip
_TEXT_AND_FILES = {
    "array_repr array_str array2string format_float_positional format_float_scientific "
    "base_repr binary_repr printoptions set_printoptions get_printoptions":
        "tm.print('{}', x) shows values when the function runs; call it after for the text",
    "load loadtxt genfromtxt fromfile fromregex fromstring from_dlpack":
        "call it before the compiled function and pass the array",
    "save savetxt savez savez_compressed":
        "return the array and call it after the compiled function",
    "info get_include show_config show_runtime test":
        "call it before or after the compiled function: it tells about NumPy, not about arrays",
}  # fmt: skip
_ARRAY_METHODS = {
    "tobytes tofile dump dumps tolist data ctypes":
        "it needs the data, which is there after the compiled function: return the array and use "
        "it there",
    "resize": "arrays keep their size here: np.resize makes another one",
    "setflags": "call it before or after the compiled function",
    "byteswap getfield setfield":
        "use .view(dtype) for the bytes of an array in other elements, or call it outside",
    "base device to_device": "ask before or after the compiled function",
}  # fmt: skip

_LINALG = {
    "matrix_norm vector_norm": "use np.linalg.norm with axis=",
    "matrix_power": "multiply with @: np.linalg.multi_dot takes a list of factors",
}
_MODULES = {
    "numpy.linalg":
        "np.linalg's decompositions and solvers are not compiled: call it before or after the "
        "compiled function (np.linalg.norm and products with @ are compiled)",
    "numpy.ma":
        "masked arrays are not compiled: pass data and mask, and use np.where, or the where=mask "
        "that np.sum, np.mean, np.max and other reductions take",
    "numpy.fft":
        "np.fft is not compiled: call it before or after the compiled function (np.convolve and "
        "np.correlate are compiled)",
}  # fmt: skip


def _by_name(*families: Mapping[str, str]) -> dict[str, str]:
    rows = [row for family in families for row in family.items()]
    return {name: advice for names, advice in rows for name in names.split()}


_ADVICE: Mapping[str, str] = _by_name(
    _COUNTED_BY_DATA, _STATISTICS, _BY_PYTHON, _INDICES, _SHAPES, _TYPES, _NUMERIC,
    _TEXT_AND_FILES,
)  # fmt: skip
_OF_LINALG: Mapping[str, str] = _by_name(_LINALG)
_OF_ARRAYS: Mapping[str, str] = _by_name(_ARRAY_METHODS)
_OUTSIDE = (
    "call it before or after the compiled function; docs/numpy-support.md lists what is supported"
)


def of_function(module: str, name: str) -> str:
    """What to do instead of calling `name` of a module of NumPy."""
    part = ".".join(module.split(".")[:2])
    if part == "numpy.linalg" and name in _OF_LINALG:
        return _OF_LINALG[name]
    return _MODULES.get(part) or _ADVICE.get(name, _OUTSIDE)


def of_array_attribute(name: str) -> str:
    """What to do instead of asking an array for `name`."""
    return _OF_ARRAYS.get(name) or _ADVICE.get(name, _OUTSIDE)


def has_advice(module: str, name: str) -> bool:
    """Whether there is more to say about it than that it belongs outside."""
    return of_function(module, name) is not _OUTSIDE
