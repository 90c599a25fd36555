"""`python -m benchmarks`: run the suite, or a part of it, and report."""

from __future__ import annotations

import argparse
import fnmatch
import secrets
import sys
from dataclasses import asdict
from pathlib import Path

from . import machine, report, startup, table
from .harness import Outcome, run_workload
from .workloads import ALL

PEERS = (
    "jax", "torch.compile", "torch.autotuned", "torch", "tensorflow", "onnxruntime", "numba",
    "numexpr",
)  # fmt: skip


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", default="*", help="workloads whose name matches this pattern")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated peers")
    parser.add_argument("--blocks", type=int, default=15, help="alternating blocks")
    parser.add_argument("--seconds", type=float, default=0.15, help="length of a block")
    parser.add_argument("--seed", type=int, default=None, help="draws the sizes; default: fresh")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"), help="folder")
    parser.add_argument("--markdown", type=Path, help="file whose table of figures is renewed")
    parser.add_argument("--no-startup", action="store_true", help="skip import and first call")
    return parser.parse_args()


def fractions(outcome: Outcome, limits: machine.Machine) -> None:
    """Fill in the share of the machine's limits that our time is."""
    workload, ours = ALL[outcome.workload], outcome.measurements[0].time
    if ours is None:
        return
    if workload.traffic is not None:
        outcome.bandwidth_fraction = workload.traffic(outcome.sizes) / ours.median / limits.copy
    if workload.flops is not None:
        peak = limits.fma32 / 2 if workload.double else limits.fma32
        outcome.flops_fraction = workload.flops(outcome.sizes) / ours.median / peak


def main() -> int:
    """Run; exit status 1 when a line is not met."""
    options = arguments()
    seed = secrets.randbits(31) if options.seed is None else options.seed
    names = [name for name in ALL if fnmatch.fnmatch(name, options.only)]
    if not names:
        print(f"no workload is named {options.only!r}: {', '.join(ALL)}", file=sys.stderr)
        return 2
    limits = machine.measure()
    if options.markdown is not None:  # a missing file or mark is said before the run, not after
        table.renewed(options.markdown.read_text(), limits, ())
    print(f"{limits.described}, seed {seed}")
    outcomes = []
    for position, name in enumerate(names):
        peers = options.peers.split(",")
        outcome = run_workload(ALL[name], peers, seed + position, options.blocks, options.seconds)
        fractions(outcome, limits)
        outcomes.append(outcome)
        print(f"[{position + 1}/{len(names)}] {report.line(outcome)}", flush=True)
    data: dict[str, object] = {"machine": asdict(limits), "seed": seed, "outcomes": outcomes}
    if not options.no_startup:
        data["import"], data["first call"] = startup.import_times(), startup.first_calls()
        print("import after NumPy:", data["import"], "\nfirst call:", data["first call"])
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_json(options.out / "results.json", data)
    report.write_plot(options.out / "ratios.png", outcomes)
    if options.markdown is not None:
        options.markdown.write_text(table.renewed(options.markdown.read_text(), limits, outcomes))
    print(report.summary(outcomes))
    return 0 if all(o.met for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
