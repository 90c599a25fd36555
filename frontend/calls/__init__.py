"""A call of a compiled function: from its arguments to a traced version, a plan and code that runs.

The way of a first call: `arguments` and `trees` flatten it, `dispatch` looks for a version,
`specialise` and `overlap` decide what is traced, `built` finds or makes the plan, `bind` writes the
tables by which the native entry answers the next one.

Invariants: `doors` names what a call of kept code does not load.
Not here: the decorator and its object (compiled.py), tracing (tracing/), the process's back end and
cache (engine.py).
"""
