#!/usr/bin/env python3
"""Draws predicted throughput against workers with its 90 % interval, beside what was measured.

    python3 docs/plot_throughput.py sweep.csv out.svg [cases.csv CASE-]

sweep.csv is of `simsync sweep` over workers; with --calibration its rows have an interval. cases.csv is of `simsync validate --csv`:
its cases whose names begin with CASE- are drawn as points. The dashed line is linear in the workers, from the one with the fewest; the
dotted one is the bound that the largest throughput of the sweep comes up to. Where they begin with one worker it prints the most
throughput of each, in workers that are alone. Needs python3-matplotlib. docs/throughput-resnet32.svg comes from

    simsync sweep --model validate/models/t2t-resnet32.yaml --cluster gce-p100 --strategy tictac --workers 1,2,3,4,5,6,7,8 \\
      --calibration validate/calibrations/gce-p100-without-res32.yaml --set strategy.order=fixed --set strategy.servers=cpu-only \\
      --set strategy.sync=false --set step_variation=0.12 --set step_time=81.6ms --csv sweep.csv
    simsync validate cmdare --csv cases.csv
    python3 docs/plot_throughput.py sweep.csv docs/throughput-resnet32.svg cases.csv cmdare-p100-res32-

and docs/throughput-testbed.svg from

    simsync sweep --model resnet50 --cluster validate/clusters/testbed-8-hosts-1-server-fair.yaml --strategy tictac --workers 1,2,3,4,6,8 \\
      --calibration validate/calibrations/testbed-8-hosts-1-server-fair.yaml --set link.ethernet.bandwidth=250Mbps --set step_time=200ms \\
      --set step_variation=0.3 --set variable_scale=0.03 --set strategy.order=random --set strategy.sync=false \\
      --set strategy.shared_process=false --set steps_per_worker=300 --csv sweep.csv
    simsync validate testbed-async-fair --csv cases.csv
    python3 docs/plot_throughput.py sweep.csv docs/throughput-testbed.svg cases.csv testbed-async-fair-250mbps-1-resnet50-random-async-
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PREDICTED, MEASURED = "#0072b2", "#d55e00"


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as table:
        return sorted(csv.DictReader(table), key=lambda r: int(r["workers"]))


def steps_per_s(row, column):
    """Of all workers together."""
    return int(row["workers"]) / float(row[column])


def tell_saturation(name, rows, column):
    """Prints the most that any number of workers reaches together, in workers that are alone."""
    rates = {int(r["workers"]): steps_per_s(r, column) for r in rows}
    if 1 in rates:
        still_more = max(rates, key=rates.get) == max(rates)
        print(f"{name}: {'at least ' if still_more else ''}{max(rates.values()) / rates[1]:.2f} workers saturate the servers")


def draw_measured(axes, cases):
    for scored, face in ((True, MEASURED), (False, "white")):
        points = [r for r in cases if (r["role"] == "scored") == scored]
        if points:
            axes.plot([int(r["workers"]) for r in points], [steps_per_s(r, "measured_step_time_s") for r in points], "o",
                      color=MEASURED, markersize=6, markerfacecolor=face, label="measured" if scored else "measured, used to calibrate")


def draw(rows, cases, path):
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "simsync", "font.size": 11, "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    workers = [int(r["workers"]) for r in rows]
    mean = [steps_per_s(r, "step_time_s") for r in rows]
    axes.fill_between(workers, [steps_per_s(r, "step_time_high_s") for r in rows], [steps_per_s(r, "step_time_low_s") for r in rows],
                      color=PREDICTED, alpha=0.2, linewidth=0, label="90 % interval")
    axes.plot(workers, mean, color=PREDICTED, linewidth=1.8, label="predicted")
    axes.plot(workers, [mean[0] / workers[0] * n for n in workers], "--", color="#777777", linewidth=1, label="linear")
    axes.axhline(max(mean), linestyle=":", color="#777777", linewidth=1.2, label="the most that is predicted")
    draw_measured(axes, cases)
    axes.set_xticks(workers)
    axes.set_ylim(0, 1.35 * max(mean))
    axes.set_xlabel("workers")
    axes.set_ylabel("steps per second, all workers")
    axes.set_title(f"{rows[0]['model']} on {rows[0]['cluster']}", fontsize=12)
    axes.grid(True, color="#dddddd", linewidth=0.7)
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=110)


def main():
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    cases = [r for r in rows_of(sys.argv[3]) if r["case"].startswith(sys.argv[4])] if len(sys.argv) == 5 else []
    rows = rows_of(sys.argv[1])
    draw(rows, cases, sys.argv[2])
    tell_saturation("predicted", rows, "step_time_s")
    tell_saturation("measured", cases, "measured_step_time_s")


if __name__ == "__main__":
    main()
