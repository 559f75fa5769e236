#!/usr/bin/env python3
"""Draws docs/vgg16-g4dn.svg: predicted and measured throughput of VGG16 against workers.

    simsync validate autodist-g4dn --case 'autodist-vgg16-*' > docs/vgg16-g4dn.csv
    python3 docs/plot_scaling.py docs/vgg16-g4dn.csv docs/vgg16-g4dn.svg

Needs python3-matplotlib.
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# The strategies shown, in the order of the legend.
STRATEGIES = {
    "horovod": "#0072b2",
    "all-reduce": "#009e73",
    "partitioned-ps": "#e69f00",
    "ps-load-balancing": "#d55e00",
    "ps": "#7f3c8d",
}


def throughput(row, column):
    return int(row["workers"]) * int(row["batch_per_worker"]) / float(row[column])


def draw(rows, path):
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "simsync", "font.size": 11, "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for strategy, color in STRATEGIES.items():
        mine = sorted((r for r in rows if r["strategy"] == strategy), key=lambda r: int(r["workers"]))
        workers = [int(r["workers"]) for r in mine]
        axes.plot(workers, [throughput(r, "predicted_step_time_s") for r in mine], color=color, linewidth=1.8, label=strategy)
        for scored in (True, False):
            points = [r for r in mine if (r["role"] == "scored") == scored]
            axes.plot([int(r["workers"]) for r in points], [throughput(r, "measured_step_time_s") for r in points], "o",
                      color=color, markersize=6, markerfacecolor=color if scored else "white")
    ticks = sorted({int(r["workers"]) for r in rows})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10)
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    steps = [s for s in (50, 100, 200, 500, 1000, 2000, 5000, 10000) if low <= s <= high]
    axes.set_yticks(steps, [f"{s:,}" for s in steps])
    axes.set_xlabel("workers (NVIDIA T4, four to a node)")
    axes.set_ylabel("samples per second")
    axes.set_title("VGG16 on g4dn.12xlarge: predicted (lines) and measured (points)", fontsize=12)
    axes.grid(True, color="#dddddd", linewidth=0.7)
    axes.plot([], [], "o", color="#555555", label="measured, scored")
    axes.plot([], [], "o", color="#555555", markerfacecolor="white", label="measured, used to calibrate")
    axes.legend(frameon=False, fontsize=10)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=110)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="", encoding="utf-8") as table:
        draw(list(csv.DictReader(table)), sys.argv[2])


if __name__ == "__main__":
    main()
