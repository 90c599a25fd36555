"""Lines with methods of ufuncs, in the form of numpy_lines.py, which joins them to its own.

Not here: what the kinds of operands mean.
"""

EXACT = """\
I: np.cumsum({0}, axis={axis})
I: np.cumprod({0}, axis={axis})
R: np.maximum.accumulate({0}, axis={axis})
R: np.minimum.accumulate({0})
R: np.fmax.accumulate({0}, axis={axis})
R: np.subtract.accumulate({0}, axis={axis})
A: np.logical_or.accumulate({0}, axis={axis})
A: np.logical_and.accumulate({0} != 0, axis=-1)
I: np.bitwise_xor.accumulate({0}, axis={axis})
I: np.bitwise_or.accumulate({0})
R: np.fmin.reduce({0}, axis={axes})
R: np.fmax.reduce({0}, axis={axis}, initial={integer})
I: np.bitwise_and.reduce({0}, axis={axes})
I: np.bitwise_xor.reduce({0}, axis={axis}, keepdims={flag})
A: np.logical_xor.reduce({0}, axis={axes})
R: np.maximum.reduceat({0}, [0, -1 % {0}.shape[0], 0])
I: np.add.reduceat({0}, [0, {0}.shape[-1] // 2], axis=-1)
RR: np.subtract.outer({0}, {1}.ravel()[:3])
RR: np.maximum.outer({0}.ravel()[:3], {1})
"""

ROUNDED = """\
R: np.hypot.accumulate({0}, axis={axis})
R: np.hypot.reduce({0}, axis={axis})
R: np.divide.accumulate({0} * {0} + 1, axis={axis})
"""

SUMS = """\
R: np.subtract.reduce({0}, axis={axis}, keepdims={flag})
Rb: np.subtract.reduce({0}, axis={axis}, where={1}, initial=2)
Ri: np.subtract.reduceat({0}, {1}.ravel()[:5].astype(np.int64) % {0}.shape[0])
N: np.cumsum({0}, axis={axis})
N: np.cumsum({0})
N: np.cumprod({0}, axis={axis})
N: np.add.reduce({0}, axis={axis})
N: np.multiply.accumulate({0}, axis={axis})
R: np.add.reduceat({0}, [0, -1 % {0}.shape[0], 0])
"""

WRITES = """\
w: np.add.at({0}, np.array([0, 0, -1]), 1)
w: np.multiply.at({0}, [0, -1, 0], 2)
wi: np.add.at({0}, {1}.ravel()[:7] % {0}.shape[0], 1)
w: np.logical_or.at({0}, [0, 0], 1)
"""
