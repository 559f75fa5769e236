#!/usr/bin/env python3
"""How far communication is off: the numbers of platforms/network_errors.yaml, and what they are worth.

    validate/network_errors.py build/release/cli/simsync

Runs the studies of real clusters, whose compute is measured, with communication half, two and four times as long: as the
presets describe them (without fits, and without the numbers of the network that a study sets), and after their fits.
For each row follows the factor by which communication would have to take longer for the step to be as measured. Each
study counts once, however many rows it has. Then leaves out one study after the other and says how many of its rows lie
in the interval that the others give. Some minutes.
"""
import csv
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

from weighted import quantile

STUDIES = ["autodist-g4dn", "ddp-a40", "dlperf-tf2", "dlperf-v100", "hkbu", "lambda", "nvidia-examples", "parallax",
           "poseidon", "sia-rtx6000", "sia-t4", "tf2017"]
# Share of the rows beyond each end. Studies differ more from each other than rows of a study: with 5 % everywhere 65 % of
# the rows of a study that is left out lie in the nominal interval of the others; with these shares 88 %.
TAIL = {"nominal": 0.02, "set": 0.05, "interference": 0.02}
NORMAL90 = 1.6449      # a standard deviation of log(factor) / NORMAL90 puts the ends of the interval at the factor
# Set by studies, but not known to a user who has measured nothing: the presets speak for them.
MEASURED = re.compile(r"(collective\.channels|collective\.interference|strategy\.rpc_per_message|link\.[\w.-]+): "
                      r"(\"[^\"]*\"|[\w.]+)(, )?")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "studies")


def variant(study, factor, fitted, folder):
    """The study with communication `factor` times as long at the ends of its intervals; the path of its file."""
    with open(os.path.join(FOLDER, study + ".yaml")) as file:
        text = file.read()
    if not fitted:
        text = re.sub(r"(?m)^  fit:\n(?:(?:    .*|\s*)\n)+", "", text)
        text = re.sub(r"(?m)^calibrate:.*\n(?=\S|\Z)", "", text)
        text = re.sub(r"(?m)^  - \{set: \{.*\n", lambda line: MEASURED.sub("", line[0]).replace(", }", "}"), text)
        text = re.sub(r"(?m)^  - \{set: \{\}.*\n", "", text)
    text = text.replace("../", os.path.dirname(FOLDER) + "/")
    said = f'  - {{set: {{compute_error: "0", network_error: "{math.log(factor) / NORMAL90:.6f}"}}}}\n'
    settings = re.search(r"(?m)^settings:.*\n", text)
    text = text[:settings.end()] + said + text[settings.end():] if settings else text + "settings:\n" + said
    path = os.path.join(folder, f"{study}-{factor}-{fitted}.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


def cases(simsync, factor, fitted):
    """By study and row: measured step, predicted step, and that with communication 1 / factor and factor as long."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for study in STUDIES:
            table = os.path.join(folder, "cases.csv")
            subprocess.run([simsync, "validate", variant(study, factor, fitted, folder), "--csv", table],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            with open(table) as file:
                for row in csv.DictReader(file):
                    if row["role"] == "calibration" or row["workers"] == "1" or not row["predicted_step_time_s"]:
                        continue
                    out[study, row["case"]] = [float(row[column]) for column in (
                        "measured_step_time_s", "predicted_step_time_s", "step_time_low_s", "step_time_high_s")]
    return out


def curve(twice, four_times):
    """Steps with communication 1/4, 1/2, 1, 2 and 4 times as long."""
    return list(zip((0.25, 0.5, 1.0, 2.0, 4.0), (four_times[2], twice[2], twice[1], twice[3], four_times[3])))


def between(x, points):
    """Straight lines through the points, also beyond them."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1 or (x1, y1) == points[-1]:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return points[-1][1]


def share_of(groups, share):
    """The least factor that this share of the rows does not exceed; every group weighs the same."""
    return quantile([(value, 1.0 / len(values)) for values in groups.values() for value in values], share)


def middle(groups, tail):
    """Where that share of the weight lies below and above; never beyond 1."""
    return min(1.0, share_of(groups, tail)), max(1.0, share_of(groups, 1.0 - tail))


class Rows:
    def __init__(self, twice, four_times):
        self.rows = {key: (twice[key][0], curve(twice[key], four_times[key])) for key in twice if key in four_times}

    def grows(self, key):
        steps = dict(self.rows[key][1])
        return steps[2.0] / steps[1.0]

    def factors(self, without=None):
        groups = defaultdict(list)
        for key, (measured, points) in self.rows.items():
            if key[0] != without and self.grows(key) > 1.2:
                groups[key[0]].append(max(0.05, between(measured, [(step, factor) for factor, step in points])))
        return groups

    def beside(self, without=None):
        groups = defaultdict(list)
        for key, (measured, points) in self.rows.items():
            if key[0] != without and self.grows(key) < 1.05:
                groups[key[0]].append(measured / dict(points)[1.0])
        return groups

    def covered(self, key, network, interference):
        """Both errors by their squares, as sim/engine/interval.cpp does; compute as if nothing were hidden."""
        measured, points = self.rows[key]
        step = dict(points)[1.0]
        exposed = step - max(0.0, between(0.0, points))
        ends = []
        for end in (0, 1):
            by_network = math.log(max(1e-9, between(network[end], points)) / step)
            by_compute = math.log(((step - exposed) * interference[end] + exposed) / step)
            ends.append(math.hypot(by_network, by_compute))
        return step * math.exp(-ends[0]) <= measured <= step * math.exp(ends[1])


def show(name, groups_without):
    groups = groups_without(None)
    low, high = middle(groups, TAIL[name])
    others = [middle(groups_without(study), TAIL[name]) for study in groups]
    print(f"{name}: low {low:.2f}, high {high:.2f}, rows {sum(map(len, groups.values()))}, studies {len(groups)}, median "
          f"{share_of(groups, 0.5):.2f}; without one of them "
          f"{min(o[0] for o in others):.2f} ... {max(o[0] for o in others):.2f} to "
          f"{min(o[1] for o in others):.2f} ... {max(o[1] for o in others):.2f}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    simsync = sys.argv[1]
    kinds = {}
    for name, fitted in (("nominal", False), ("set", True)):
        kinds[name] = Rows(cases(simsync, 2, fitted), cases(simsync, 4, fitted))
        show(name, kinds[name].factors)
    show("interference", kinds["set"].beside)
    for name, rows in kinds.items():
        inside = 0
        for study in STUDIES:
            network = middle(rows.factors(without=study), TAIL[name])
            interference = middle(kinds["set"].beside(without=study), TAIL["interference"])
            of_study = [key for key in rows.rows if key[0] == study]
            covered = sum(rows.covered(key, network, interference) for key in of_study)
            inside += covered
            if of_study:
                print(f"  {name}: {study} left out: {100.0 * covered / len(of_study):.0f} % of {len(of_study)} rows in the "
                      f"interval of the others ({network[0]:.2f} to {network[1]:.2f})")
        print(f"{name}, one study left out: {100.0 * inside / len(rows.rows):.1f} % of {len(rows.rows)} rows")


if __name__ == "__main__":
    main()
