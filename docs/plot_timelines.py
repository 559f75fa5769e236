#!/usr/bin/env python3
"""Draws a predicted and a measured step side by side: what runs when on each node.

    python3 docs/plot_timelines.py predicted.json measured.json timelines.svg [node0 node1 ...]

Of the prediction it is the last iteration, which is the steady one; `--set fidelity=fluid` shows every node, where folded shows one
of all alike. Of the measurement it is the one before the last that was timed. A collective is one bar on all its ranks, from the
first that starts to the last that ends; those that follow each other directly look like one. Times count
from the end of the step before. Needs python3-matplotlib. docs/timelines-ddp.svg comes from

    question="--model resnet50 --strategy ddp --workers 4 --set step_time=800ms --set variable_scale=0.3"
    simsync predict $question --cluster validate/clusters/testbed-4x1gbps.yaml \\
      --calibration validate/calibrations/testbed-4x1gbps.yaml --set fidelity=fluid --timeline predicted.json \\
      --timeline-ranks all
    simsync measure $question --testbed 4 --rate 1Gbps --csv measured.csv --timeline measured.json
    python3 docs/plot_timelines.py predicted.json measured.json docs/timelines-ddp.svg node0 node1
"""
import json
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# First words of what people call an op, in the order of the legend.
COLORS = {
    "forward": "#56b4e9",
    "backward": "#0072b2",
    "all-reduce": "#009e73",
    "push": "#e69f00",
    "pull": "#d55e00",
    "aggregate": "#cc79a7",
    "update": "#7f3c8d",
}
ROWS = ("compute", "communication", "cpu")


def kind_of(name):
    for kind in COLORS:
        if name.startswith(kind):
            return kind
    return None


def row_of(thread):
    """Which of ROWS a thread belongs to; None for links and copies."""
    name = re.sub(r" \(\d+\)$", "", thread)
    if name.endswith(" compute"):
        return "compute"
    if name.endswith(" communication"):
        return "communication"
    return "cpu" if re.fullmatch(r"cpu\d*", name) else None


def step_of(path, from_end):
    """(length in ms, [(node, row, kind, begin ms, length ms)]) of an iteration of a trace; 1 from the end is the last."""
    events = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
    process, thread = {}, {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name":
            process[e["pid"]] = e["args"]["name"].split(" ")[0]
        if e["ph"] == "M" and e["name"] == "thread_name":
            thread[e["pid"], e["tid"]] = e["args"]["name"]
    boxes = [e for e in events if e["ph"] == "X"]
    iterations = sorted((e for e in boxes if thread[e["pid"], e["tid"]] == "iterations"), key=lambda e: e["ts"])
    step = iterations[-from_end]
    begin, end = step["ts"], step["ts"] + step["dur"]
    found = []
    for e in boxes:
        row, kind = row_of(thread[e["pid"], e["tid"]]), kind_of(e["name"])
        first, last = max(e["ts"], begin), min(e["ts"] + e["dur"], end)
        if row and kind and last > first:
            found.append((process[e["pid"]], row, kind, (first - begin) / 1000, (last - first) / 1000))
    return step["dur"] / 1000, found


def merged(boxes, gap):
    """Boxes (begin, length) of one color with those that touch made one."""
    out = []
    for begin, length in sorted(boxes):
        if out and begin - (out[-1][0] + out[-1][1]) < gap:
            out[-1] = (out[-1][0], max(out[-1][1], begin + length - out[-1][0]))
        else:
            out.append((begin, length))
    return out


def draw(axes, title, step, boxes, nodes):
    labels = []
    for node in nodes:
        for row in ROWS:
            mine = [b for b in boxes if b[0] == node and b[1] == row]
            y = len(labels)
            for kind, color in COLORS.items():
                bars = merged([(b[3], b[4]) for b in mine if b[2] == kind], 1e-4 * step)
                axes.broken_barh(bars, (y - 0.4, 0.8), facecolors=color, linewidth=0)
            labels.append(f"{node} {row}")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.axvline(step, color="#333333", linewidth=1)
    axes.set_xlabel("ms")
    axes.set_title(f"{title}: {step:.1f} ms", fontsize=12)
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    predicted, measured = step_of(sys.argv[1], 1), step_of(sys.argv[2], 2)
    nodes = sys.argv[4:] or sorted({b[0] for b in predicted[1]})[:2]
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "simsync", "font.size": 10, "font.family": "sans-serif"})
    figure, pair = plt.subplots(1, 2, figsize=(12, 1.2 + 0.45 * len(nodes) * len(ROWS)), sharey=True)
    figure.subplots_adjust(left=0.16, right=0.99, top=0.91, bottom=0.22, wspace=0.04)
    draw(pair[0], "predicted", *predicted, nodes)
    draw(pair[1], "measured", *measured, nodes)
    longest = max(predicted[0], measured[0])
    for axes in pair:
        axes.set_xlim(0, 1.02 * longest)
    shown = {b[2] for b in predicted[1] + measured[1] if b[0] in nodes}
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for kind, color in COLORS.items() if kind in shown]
    figure.legend(handles, [kind for kind in COLORS if kind in shown], loc="lower center", ncols=len(COLORS), frameon=False)
    path = sys.argv[3]
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=110)


if __name__ == "__main__":
    main()
