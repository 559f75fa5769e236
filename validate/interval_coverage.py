#!/usr/bin/env python3
"""What intervals of estimated layer times are worth: leave-one-out coverage.

    simsync validate single-device --csv cases.csv
    validate/interval_coverage.py cases.csv validate/reference/single_device.csv

Prints the middle 90 % of measured over predicted (the numbers of models/time_errors.yaml), the errors by device, model
and precision, and the share of rows that lie in the interval that the others give. A pair of a model and a device counts
once, however many rows it has.
"""
import csv
import math
import sys
from collections import Counter, defaultdict

from weighted import quantile

TAIL = 0.05  # of the rows beyond each end


def read(cases_file, table_file):
    with open(table_file) as file:
        table = {row["id"]: row for row in csv.DictReader(file)}
    rows = []
    with open(cases_file) as file:
        for case in csv.DictReader(file):
            row = table[case["case"]]
            error = math.log(float(case["measured_step_time_s"]) / float(case["predicted_step_time_s"]))
            rows.append(row | {"error": error, "units": "fp32" if row["precision"] == "fp32" else "matrix",
                               "family": row["model"].split("-")[0].rstrip("0123456789")})
    return rows


def spread(rows):
    """Where 5 % of the weight lies below and above, never beyond the prediction itself."""
    times = Counter((row["model"], row["device"]) for row in rows)
    weighted = [(row["error"], 1.0 / times[row["model"], row["device"]]) for row in rows]
    return min(0.0, quantile(weighted, TAIL)), max(0.0, quantile(weighted, 1.0 - TAIL))


def coverage(rows, column):
    inside = 0
    for left_out in {row[column] for row in rows}:
        for units in ("fp32", "matrix"):
            tested = [row for row in rows if row[column] == left_out and row["units"] == units]
            others = [row for row in rows if row[column] != left_out and row["units"] == units]
            if tested:
                low, high = spread(others)
                inside += sum(low <= row["error"] <= high for row in tested)
    return 100.0 * inside / len(rows)


def table_of(rows, columns):
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row["error"])
    print(f"\nmeasured over predicted by {', '.join(columns)}: rows, geometric mean, mean absolute error of the prediction")
    for key, errors in sorted(groups.items()):
        mean = math.exp(sum(errors) / len(errors))
        mape = 100.0 * sum(abs(math.exp(-error) - 1.0) for error in errors) / len(errors)
        print(f"  {' '.join(key):32} {len(errors):4} {mean:6.2f} {mape:5.0f} %")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = read(sys.argv[1], sys.argv[2])
    for units in ("fp32", "matrix"):
        chosen = [row for row in rows if row["units"] == units]
        low, high = spread(chosen)
        print(f"estimate_{units}: low {math.exp(low):.2f}, high {math.exp(high):.2f}, rows {len(chosen)}")
    for column in ("model", "family", "device", "source"):
        print(f"coverage, one {column} left out: {coverage(rows, column):.1f} % of {len(rows)} rows")
    table_of(rows, ["units"])
    table_of(rows, ["family", "units"])
    table_of(rows, ["device", "precision"])
    table_of(rows, ["source", "framework"])


if __name__ == "__main__":
    main()
