#!/usr/bin/env python3
"""How far the native solver is from SimGrid over the cases of studies.

    validate/solver_difference.py build/release/cli/simsync [STUDY...]     # all when none is named

Predicts every case of each study with either solver, after the same fit, and prints by study the largest difference of
a step in parts of it, the cases that differ by more than 1e-6, and the worst of them. Hours for all: nanotron and vtrain
take most of it.
"""
import csv
import os
import subprocess
import sys
import tempfile

from study_copy import VALIDATE, write_study

SAME = 1e-6


def steps(simsync, study, solver, folder):
    """By case its predicted step in seconds; None where the study cannot be run."""
    path = write_study(folder, study, f"  - {{set: {{solver: {solver}}}}}\n")
    table = os.path.join(folder, "cases.csv")
    done = subprocess.run([simsync, "validate", path, "--csv", table], capture_output=True, text=True, check=False)
    if not os.path.exists(table):
        print(f"{study}: {done.stderr.strip()}", file=sys.stderr)
        return None
    with open(table) as file:
        rows = [row for row in csv.DictReader(file) if row["predicted_step_time_s"]]
    os.remove(table)
    return {row["case"]: float(row["predicted_step_time_s"]) for row in rows}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    studies = sys.argv[2:] or sorted(name[:-5] for name in os.listdir(os.path.join(VALIDATE, "studies")))
    print("study,cases,largest_difference,above_1e-6,worst_case")
    for study in studies:
        with tempfile.TemporaryDirectory() as folder:
            by_solver = [steps(sys.argv[1], study, solver, folder) for solver in ("simgrid", "native")]
        if None in by_solver:
            continue
        simgrid, native = by_solver
        if simgrid.keys() != native.keys():
            sys.exit(f"{study}: the solvers predict other cases")
        apart = {case: abs(native[case] / step - 1) for case, step in simgrid.items() if step > 0}
        worst = max(apart, key=apart.get, default="")
        print(f"{study},{len(apart)},{apart.get(worst, 0):.1e},{sum(of > SAME for of in apart.values())},{worst}",
              flush=True)


if __name__ == "__main__":
    main()
