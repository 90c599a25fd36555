"""Optimisers: from gradients to the next values of Variables.

    opt = tm.optim.Adam([w, b], lr=1e-3)

    @tm.jit
    def step(x, y):
        loss = ...
        opt.apply(tm.gradients(loss, [w, b]))
        return loss

Everything an optimiser remembers is a Variable named after it and the Variable it belongs to, so
a checkpoint of the store holds it; the learning rate is one too: ``opt.lr.assign(1e-4)``.

Invariants: written from public operations alone; a Variable whose gradient is None is left alone.
Not here: schedules, clipping, averages.
"""

from .adaptive import Adagrad, Adam, RMSProp
from .momentum import SGD, Momentum
from .optimizer import Optimizer

__all__ = ["SGD", "Adagrad", "Adam", "Momentum", "Optimizer", "RMSProp"]
