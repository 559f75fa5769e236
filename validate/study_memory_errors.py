#!/usr/bin/env python3
"""Memory of a device, predicted against measured, over the rows of studies whose table has a column `memory_gib`.

    validate/study_memory_errors.py build/release/cli/simsync h200-slices h200-models

Repeats the `simsync predict` of every case of the studies (those of validate/studies) and compares its `memory_bytes`
with the row's `memory_gib` (the peak of PyTorch's allocated bytes in a step). Rows whose column is empty are left out.
"""
import csv
import os
import re
import shlex
import subprocess
import sys

STUDIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "studies")
GIB = 2.0**30


def measured_of(study):
    """The rows of a study's table, by id."""
    with open(os.path.join(STUDIES, study + ".yaml")) as file:
        table = re.search(r"^reference: *(\S+)", file.read(), re.MULTILINE).group(1)
    with open(os.path.join(STUDIES, table)) as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def rows_of(command, statuses):
    """The rows of CSV that a command writes to standard output; another exit status ends this script."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in statuses:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}: {done.stderr}")
    return list(csv.DictReader(done.stdout.splitlines()))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print("study,id,needs_gib,measured_gib,error_pct")
    for study in sys.argv[2:]:
        measured = measured_of(study)
        errors = []
        for case in rows_of([sys.argv[1], "validate", study, "--csv", "-"], (0, 1)):  # 1: it misses its tolerance
            row = measured[case["case"]]
            if not row["memory_gib"]:
                continue
            command = [sys.argv[1]] + shlex.split(case["command"])[1:] + ["--csv", "-"]
            needs = float(rows_of(command, (0,))[0]["memory_bytes"]) / GIB
            errors.append(100.0 * (needs / float(row["memory_gib"]) - 1.0))
            print(f"{study},{row['id']},{needs:.2f},{row['memory_gib']},{errors[-1]:.1f}")
        print(f"{study}: memory of {len(errors)} rows: mean absolute error {sum(map(abs, errors)) / len(errors):.1f} %, "
              f"largest {max(errors, key=abs):+.1f} %", file=sys.stderr)


if __name__ == "__main__":
    main()
