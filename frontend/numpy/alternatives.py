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
    "argwhere":
        "tm.argwhere(x, size=n) gives back n rows and fills up; or use np.where with three "
        "arguments, a reduction with where=mask, or np.count_nonzero for their number",
    "nonzero flatnonzero":
        "tm.flatnonzero(x, size=n) gives back n places and fills up, as does tm.nonzero; or use "
        "np.where with three arguments, a reduction with where=mask, or np.count_nonzero",
    "trim_zeros":
        "how many elements stay is data: set what is not wanted to a value of its own by np.where",
    "unique unique_all unique_counts unique_inverse unique_values":
        "how many elements come out is data: tm.unique(x, size=n) gives back n and fills up",
    "union1d": "use tm.unique(np.concatenate((a, b)), size=n), which gives back n and fills up",
    "intersect1d setdiff1d setxor1d":
        "how many elements come out is data: np.isin(a, b) is a mask of those of a that are in "
        "b, and np.where takes it",
}  # fmt: skip
_BY_PYTHON = {
    "frompyfunc":
        "write the function on whole arrays: operators and np. functions work on all elements at "
        "once, np.where chooses between two results; tm.host_call calls Python",
    "nditer nested_iters":
        "write it on whole arrays, or use tm.fori_loop and index the array",
}  # fmt: skip
_SHAPES = {
    "bmat": "use np.block",
    "asmatrix matrix": "use plain arrays of rank 2 with @, or np.matmul",
    "shares_memory may_share_memory": "ask before the compiled function, which gets the arrays",
}  # fmt: skip
_TYPES = {
    "isnat busday_count busday_offset is_busday datetime_as_string datetime_data":
        "dates cannot be compiled: call it before, and pass integers or a mask",
}  # fmt: skip
_NUMERIC = {
    "einsum_path": "np.einsum finds an order of its own; call einsum_path before",
    "polymul": "use np.convolve of the coefficients",
    "roots polydiv":
        "call it before or after the compiled function; np.polyval evaluates polynomials inside",
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
    "tobytes tofile dump dumps tolist data ctypes __array_interface__ __array_struct__ __dlpack__ "
    "__dlpack_device__":
        "it needs the data, which is there after the compiled function: return the array and use "
        "it there",
    "resize": "arrays keep their size here: np.resize makes another one",
    "setflags": "call it before or after the compiled function",
    "byteswap getfield setfield":
        "use .view(dtype) for the bytes of an array in other elements, or call it outside",
    "base device to_device": "ask before or after the compiled function",
}  # fmt: skip
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
    _COUNTED_BY_DATA, _BY_PYTHON, _SHAPES, _TYPES, _NUMERIC,
    _TEXT_AND_FILES,
)  # fmt: skip
_OF_ARRAYS: Mapping[str, str] = _by_name(_ARRAY_METHODS)
_OUTSIDE = (
    "call it before or after the compiled function, or inside by tm.host_call; "
    "docs/numpy-support.md lists what is supported"
)


def of_function(module: str, name: str) -> str:
    """What to do instead of calling `name` of a module of NumPy."""
    part = ".".join(module.split(".")[:2])
    return _MODULES.get(part) or _ADVICE.get(name, _OUTSIDE)


def of_array_attribute(name: str) -> str:
    """What to do instead of asking an array for `name`."""
    return _OF_ARRAYS.get(name) or _ADVICE.get(name, _OUTSIDE)


def has_advice(module: str, name: str) -> bool:
    """Whether there is more to say about it than that it belongs outside."""
    return of_function(module, name) is not _OUTSIDE
