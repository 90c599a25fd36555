"""What to do about each error: one paragraph per code, for the documentation.

Invariants: every code of `errors.CODES` has a text here, and nothing else has one.
Not here: classes and titles (errors.py); programs that fail and how they are repaired
(docs/error_programs.py).
"""

from __future__ import annotations

from collections.abc import Mapping

HELP: Mapping[str, str] = {
    # tracing
    "TM101": "A function is compiled from one run on stand-ins for its arrays. Python's `if`, "
    "`while`, `for`, `and`, `or` and `not` on their values become branches and loops of the graph "
    "(control-flow.md), but not in functions without source, around `yield`, `await`, a class or "
    "`global`, or where a jump leaves a `with` or `try`, nor do `sorted` and `in`. `raise` becomes "
    "a check, but not inside a `try`, or behind a write or print of its block. Choose values with "
    "`np.where`, use `tm.cond` and `tm.while_loop`; make an option that "
    "is the same for many calls a parameter named in `static_argnames`.",
    "TM102": "`int(x)`, `float(x)`, `x.item()`, `range(x)` and list indices need the value itself "
    "while the function is traced. Keep it an array, take the number from a shape "
    "(`x.shape[0]` is known), or pass it as an argument named in `static_argnames`.",
    "TM103": "What a traced function keeps in a global, a list or an attribute is a stand-in that "
    "means nothing afterwards. Return the value, or keep it in a `tm.Variable`.",
    "TM104": "A recursion that ends on a value of an array has no end while it is traced: write it "
    "as a loop. Leave `@tm.jit` off an inner function: what is called is compiled with it.",
    "TM105": "Arrays, NumPy scalars, Python numbers, Variables, and lists, tuples, dicts and "
    "dataclasses of these can take part in a computation. Pass other objects as they are and use "
    "only their attributes, or name the argument in `static_argnames`.",
    "TM106": "The array was handed to code that reads its memory, such as a C extension or another "
    "library. Call that code before or after the compiled function. Draws of a generator from "
    "outside (`rng.random(3)`) would be frozen: pass the numbers, or draw with `tm.random`. An "
    "array that a branch gives another name is not written: give it a copy (`a = b.copy()`).",
    "TM107": "A function is run once to trace it; its compiled form is called from then on, so "
    "`self.count += 1`, `global n; n += 1` and the like would happen once. Keep such a number in a "
    "`tm.Variable`, which every call updates, return it, or change it outside.",
    "TM110": "Call the function before or after the compiled one, or write it with supported "
    "functions; numpy-support.md lists them.",
    "TM111": "The function is supported, this argument or form of it is not. The message says "
    "which form is; often the same result can be had with two calls.",
    "TM112": "The result would have a size that depends on data. Keep the full size and select "
    "with `np.where`; `x[mask]` may be reduced (`x[mask].sum()`) and assigned (`x[mask] = 0`).",
    "TM113": "An exported library runs without Python: it cannot print, call back, or hold Python "
    "objects. Leave that part out of the exported function.",
    "TM120": "A gradient needs a loss that is one real floating number: reduce it, for example "
    "with `.sum()` or `.mean()`. Ops without gradient are marked in operations.md; "
    "`tm.stop_gradient` says that a value is to be taken as a constant.",
    "TM121": "A tangent has the structure, dtype and shape of the argument it is the change of, a "
    "cotangent those of the result; None stands for integers and bools. Convert it with "
    "`.astype(...)`, or make it with `np.ones_like` and its like.",
    "TM122": "`tm.vmap` takes lanes along one axis of each mapped argument (`in_axes`, by "
    "argument), and these axes have one size. None in `in_axes` is for an argument without lanes; "
    "at least one has them. `out_axes` says where the axis goes in each result.",
    "TM123": "What is mapped over lanes may write to arrays of its own, and give a Variable one "
    "value for all lanes (`count.assign_add(1)`, draws of a generator). A value that differs "
    "between lanes is returned and reduced outside of `tm.vmap`; random numbers are drawn before a "
    "branch or loop that lanes take differently.",
    "TM130": "Look the name up with `program.names(entry)`, or in the store the variable belongs "
    "to; the message names the nearest ones.",
    # operands
    "TM201": "The call has too few or too many arrays; for a step of a Program, feed the values "
    "that the message names or describe them with `program.describe`.",
    "TM202": "Convert the operand with `.astype(...)` to one of the types the message lists.",
    "TM203": "The message says which argument, what it may be and what it was.",
    "TM204": "From the right, two sizes must be equal or one of them 1, as in NumPy. Insert the "
    "missing axis (`x[:, None]`, `keepdims=True`) or transpose.",
    "TM205": "The target shape must be reachable from the right: equal sizes, or 1 in the array.",
    "TM206": "The new shape must have as many elements as the array; let one size be -1 to have it "
    "computed.",
    "TM207": "The slice or region named in the message must lie inside the array. If sizes are "
    "computed from shapes, check them for the smallest array the function is called with.",
    "TM208": "The array has too few or too many axes: add one with `np.expand_dims`, drop one by "
    "indexing or `np.squeeze`.",
    "TM209": "The two sizes named in the message must be equal, for example the inner ones of a "
    "matrix product or those beside the axis of `np.concatenate`.",
    "TM210": "bool, integers, floats up to 64 bits, bfloat16 and complex numbers in native byte "
    "order can be compiled. Convert the array with `.astype(...)` before the call.",
    "TM220": "An array of rank n has axes -n to n - 1.",
    "TM221": "Name each axis once; remember that -1 and the last axis are the same.",
    "TM230": "An index must lie in [-size, size) of its axis. The call wrote nothing. Clip indices "
    "from data (`np.clip(i, 0, n - 1)`) if that is what you mean.",
    "TM240": "Check the spelling; operations.md lists all ops.",
    "TM241": "`max`, `min`, `argmax` and `argmin` of nothing do not exist. Pass `initial=`, or do "
    "not call the function with an empty array.",
    "TM242": "Sizes and counts must be zero or more; if it is computed from shapes, use "
    "`max(0, ...)`.",
    "TM243": "A slice may step by any whole number but 0.",
    "TM244": "The condition of a check written in the program was false for some element. A "
    "`raise` on values of the run raises its own exception; this one only where its class is gone.",
    "TM245": "A Variable keeps its dtype and shape: convert the value with `.astype(...)` or "
    "`reshape`, or make another Variable.",
    "TM246": "NumPy refuses Python numbers that do not fit the array's type. Convert the array "
    "to a wider type, or the number with `np.int64(...)`.",
    "TM247": "The array that was passed is read-only. Pass a copy, or make the result a new array.",
    "TM248": "The result has a wider type than the array it is to be stored in (`x += 0.5` on "
    "integers). Convert one of them, or store with `x[...] = value`, which casts.",
    "TM249": "Use a floating base: `x.astype(float) ** -1`, or `1 / x`.",
    "TM250": "The shape multiplies out to more bytes than a 64-bit address can name: usually a "
    "size in the wrong place.",
    "TM251": "A function of Python's `math` got a number outside its domain, as in Python.",
    "TM252": "Python raises here, too; arrays and NumPy scalars give inf, NaN or 0. Make the "
    "divisor a NumPy scalar (`np.float64(...)`) if that is what you mean.",
    "TM253": "Python's answer is a complex number, and what a compiled function returns may not "
    "change its type with a value. Write `complex(x) ** p` for Python's answer, "
    "`np.float64(x) ** p` for NumPy's NaN.",
    "TM254": "Arguments that share memory, of which one is written, are compiled as views of that "
    "memory; they need one element type, and elements that do not begin in the middle of others. "
    "Pass a copy of the one that is only read, or views of the right type made inside the "
    "function.",
    "TM255": "NumPy cuts a slice off at the end of its axis. Here its length was taken to be the "
    "difference of its bounds, as the function needed it before it knew them. Keep the bounds "
    "inside, or take elements by an index array: `x[i + np.arange(n)]`.",
    "TM256": "Strides, dilations and numbers of groups are at least 1, padding is not negative, "
    "and the groups share out both channels: groups times the channels of the weights are the "
    "channels of the image.",
    "TM257": "`np.bincount(x, minlength=n)` gives back n counts, so every number has to be one "
    "of 0 to n - 1: a larger `minlength` makes room; negative numbers NumPy refuses as well.",
    "TM258": "Edges of bins go up (for `np.digitize` up or down), the range of a histogram is "
    "finite, and quantiles lie from 0 to 1, percentiles from 0 to 100.",
    "TM259": "A result whose size is data has the size that is given, and is filled up. Give a "
    "larger `size=`: the number of elements is always enough.",
    "TM260": "What a loop carries keeps its dtype and shape on every trip, and both branches of an "
    "`if` or `tm.cond` give the same structure, dtypes and shapes: convert with `.astype(...)`, "
    "and give a variable such a value on every way to where it is used.",
    "TM261": "A slice of nothing but NaN has no largest or smallest element. Put a number in place "
    "of NaN first (`np.where(np.isnan(x), -np.inf, x)`), or leave such slices out.",
    "TM262": "An average is divided by the sum of its weights, which must not be zero. Divide "
    "yourself to get NaN or infinities there: `(x * w).sum() / w.sum()`.",
    "TM263": "Every element of a geometric sequence is the last one times a factor, so none is "
    "zero. `np.linspace` goes through zero.",
    "TM264": "An array of integers has no place for NaN. Make it an array of floats "
    "(`x.astype(float)`), or store another number, such as -1.",
    "TM265": "`np.unravel_index`, `np.ravel_multi_index` and `np.choose` take numbers from 0 up to "
    "the size they count in. The last two take `mode='wrap'` or `mode='clip'` for others; negative "
    "numbers do not count from the end.",
    "TM266": "`np.asarray_chkfinite` lets only finite numbers through. `np.isfinite(x)` says where "
    "the others are.",
    "TM267": "`generator.integers(low, high)` draws from `low` up to and without `high`: `low` is "
    "below `high`, both are single integers, and the type that is asked for (`dtype=`) holds all.",
    "TM268": "The dtypes and shapes of `result=` are what the compiled function is made for. "
    "Describe what the function returns (`tm.Spec(dtype, shape)`), or convert it there: "
    "`np.asarray(y, dtype)`.",
    "TM270": "The matrix has no inverse: a row is a sum of multiples of the others, or is zero. "
    "`np.linalg.lstsq` and `np.linalg.pinv` give the nearest solution.",
    "TM271": "A Cholesky factor needs a symmetric (Hermitian) matrix whose eigenvalues are all "
    "positive; a small multiple of `np.eye(n)` added makes one that is nearly so one.",
    "TM272": "The iteration for eigenvalues or singular values did not end: look for NaN and "
    "infinities in the matrix.",
    "TM273": "LAPACK refused the matrix; this is a bug of ours.",
    "TM274": "`np.linalg.lstsq` gives residuals where there are more rows than columns and the "
    "rank is full, else an empty array, so their number is data. `np.linalg.pinv(a) @ b` is the "
    "solution for any rank.",
    "TM275": "`np.linalg.eig` and `np.linalg.eigvals` take finite numbers only. "
    "`np.isfinite(a)` says where the others are.",
    # our own bugs
    "TM301": "The text is not in the form that printed graphs have; the message names line and "
    "column.",
    "TM302": "The graph breaks a rule of the verifier; the detail lists all of them with their "
    "V-codes.",
    "TM303": "This is a bug in tracemill: please report it with the printed graph in the message. "
    "`tm.disable_jit()` runs the function without compiling meanwhile.",
    "TM304": "This is a bug in tracemill: please report it with the message. `tm.disable_jit()` "
    "runs the function without compiling meanwhile.",
    "TM401": "The message names the op and the target. On the cpu this is a bug: please report it.",
    "TM402": "This is a bug in tracemill or LLVM: please report it with the output of "
    "`tm.show_config()`.",
    # the world
    "TM501": "Check the path: it must be a folder written by `tm.save`.",
    "TM502": "The file was changed or cut after it was written. Use another copy.",
    "TM503": "Read it with the release that wrote it and save it again, or upgrade.",
    "TM504": "The file could run code when read (a pickle, for example) and was not opened.",
    "TM510": "Check that the folder exists, is writable and has room; the earlier checkpoint, if "
    "there was one, is untouched.",
    "TM511": "The checksums do not match: restore from another checkpoint. No Variable was "
    "changed.",
    "TM512": "The message lists what is missing, extra or of another type. Pass the Variables that "
    "were saved, under the names they had. No Variable was changed.",
    "TM520": "Devices are named like `cpu:0` and `cpu:1`.",
    "TM530": "Open a new queue; what was in it has been delivered or dropped.",
    "TM531": "What was to be written may be written in part; call again.",
    "TM532": "Allow more time or work on less data. What was to be written may be written in part.",
    "TM533": "Start the process again and go on from the last checkpoint.",
    "TM540": "The message holds what the C compiler said. Check that it is installed (`cc=`) and "
    "that the folder is writable.",
}
