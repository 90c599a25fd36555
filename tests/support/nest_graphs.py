"""Graphs of loops around numbers, over an element type DT: `x` of n elements, `k` trips.

Not here: programs (compiled/test_nests.py).
"""

# %x[i] = x[i] + x[k - 1 - i], in an order in which what is read was read before it is written.
EXCHANGE = """graph @f(%x: DT[n], %k: i64[]) -> DT[n], token {
  %y, %t = for 0:i64, %k, %x, %k {carried=1} : DT[n], token (%i: i64[], %c: DT[n], %k: i64[]) {
    %m = sub %k, %i : i64[]
    %j = sub %m, 1 : i64[]
    %a, %p = gather %c, %i {axes=[0]} : DT[], token
    %b, %q = gather %c, %j {axes=[0]} : DT[], token
    %d, %r = scatter %c, %b, %i {axes=[0]} : DT[n], token
    %s = add %a, %b : DT[]
    %e, %u = scatter %d, %s, %j {axes=[0]} : DT[n], token
    yield %e, %p, %q, %r, %u
  }
  return %y, %t
}
"""
CHOICES = """graph @f(%x: DT[n], %k: i64[]) -> DT[n], i64[], token {
  %y, %z, %t = for 0:i64, %k, %x, 0:i64 {carried=2} : DT[n], i64[], token \
(%i: i64[], %c: DT[n], %s: i64[]) {
    %r = remainder %i, 3:i64 : i64[]
    %w = equal %r, 1:i64 : bool[]
    %d, %u, %v = cond %w, %c, %s, %i : DT[n], i64[], token (%c: DT[n], %s: i64[], %i: i64[]) {
      %a = cast %s {dtype=DT} : DT[]
      %e, %o = scatter %c, %a, %i {axes=[0]} : DT[n], token
      %m = add %s, %i : i64[]
      yield %e, %m, %o
    } (%c: DT[n], %s: i64[], %i: i64[]) {
      %m = sub %s, 1:i64 : i64[]
      yield %c, %m
    }
    yield %d, %u, %v
  }
  return %y, %z, %t
}
"""
HALVES = """graph @f(%x: DT[n], %k: i64[]) -> DT[n], token {
  %y, %t = for 0:i64, %k, %x {carried=1} : DT[n], token (%i: i64[], %c: DT[n]) {
    %p = greater %i, 0:i64 : bool[]
    %l, %d, %u = while %p, %i, %c {carried=2} : i64[], DT[n], token (%j: i64[], %c: DT[n]) {
      %h = floor_divide %j, 2:i64 : i64[]
      %a, %o = gather %c, %h {axes=[0]} : DT[], token
      %b = add %a, %a : DT[]
      %e, %q = scatter %c, %b, %j {axes=[0]} : DT[n], token
      %g = greater %h, 0:i64 : bool[]
      yield %g, %h, %e, %o, %q
    }
    yield %d, %u
  }
  return %y, %t
}
"""
