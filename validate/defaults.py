#!/usr/bin/env python3
"""What studies say of the defaults that they chose: the tables of "Defaults, with one study left out" in README.md.

    validate/defaults.py build/release/cli/simsync [NAME...]     # tensorflow, variation, collectives; all when none is named

Runs the studies that a default concerns with every value that was considered, all else as it is (their fits are done
again), and prints the MAPE of the step of each in percent; where a study measured strategies beside each other, also the
share of their pairs that is ranked as measured. A study counts once, however many rows it has. Then leaves out one
study after the other: the value with the least mean MAPE over the others, what the study left out has with it, with the
default, and at best. Some minutes.
"""
import csv
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

from study_copy import VALIDATE, write_study

ROOT = os.path.dirname(VALIDATE)

# Rows of each study whose strategy has the option, as a `where` of its settings.
TENSORFLOW_SERVERS = {
    "autodist-g4dn": "{system: [PS, PSLoadBalancing, PartitionedPS, Parallax]}",
    "tf2017": "{update: parameter-server}",
    "parallax": "{system: [TF-PS, Parallax-PS]}",
    "cmdare": None,
}
COLLECTIVES = {
    "autodist-g4dn": "{system: [AllReduce, Horovod]}",
    "ddp-a40": "{system: [single, ddp, serial]}",
    "hkbu": "{system: [BSP-A2A, WFBP-A2A, MG-WFBP]}",
    "lambda": None,
    "nvidia-examples": None,
    "parallax": "{system: [Horovod, Parallax-MPI, Parallax-HYBRID]}",
    "sia-rtx6000": None,
    "sia-t4": None,
    "tf2017": "{update: replicated}",
}


def settings(studies, values):
    """By study the line of `settings:` that says these."""
    said = ", ".join(f'{key}: "{value}"' for key, value in values.items())
    return {study: f"  - {{set: {{{said}}}" + (f", where: {where}" if where else "") + "}\n"
            for study, where in studies.items()}


class Default:
    """`candidates`: name -> by study a line of settings; `variation`: name -> compute_variation of all devices."""

    def __init__(self, chosen, candidates, variation=None):
        self.chosen, self.candidates, self.variation = chosen, candidates, variation or {}


def tensorflow():
    candidates = {}
    for node, between, threads in itertools.product("10", "10", ("false", "true")):
        name = f"{'nothing' if node == '0' else 'all'} in a node, {'nothing' if between == '0' else 'all'} between, " \
               f"{'all threads' if threads == 'true' else 'one thread'}"
        candidates[name] = settings(TENSORFLOW_SERVERS, {
            "strategy.servers_overlap_in_node": node, "strategy.servers_overlap_between_nodes": between,
            "strategy.parallel_host_ops": threads})
    return Default("nothing in a node, nothing between, all threads", candidates)


def variation():
    studies = ["autodist-g4dn", "ddp-a40", "dlperf-tf2", "dlperf-v100", "hkbu", "lambda", "nvidia-examples", "parallax",
               "poseidon", "sia-rtx6000", "sia-t4", "tf2017"]
    values = ("0", "0.01", "0.02", "0.03")
    return Default("0.01", {value: {study: "" for study in studies} for value in values}, {v: v for v in values})


def collectives():
    candidates = {"as it is": {study: "" for study in COLLECTIVES}}
    for value in ("0.5", "0"):
        candidates[f"overlap {value}"] = settings(COLLECTIVES, {
            "strategy.collectives_overlap_in_node": value, "strategy.collectives_overlap_between_nodes": value})
    for value in ("0.05", "0.1"):
        candidates[f"interference {value}"] = settings(COLLECTIVES, {"collective.interference": value})
    return Default("as it is", candidates)


DEFAULTS = {"tensorflow": tensorflow, "variation": variation, "collectives": collectives}


def data_tree(folder, device_variation):
    """The program's data with another compute_variation of all devices."""
    for room in ("models", "validate"):
        os.symlink(os.path.join(ROOT, room), os.path.join(folder, room))
    shutil.copytree(os.path.join(ROOT, "platforms"), os.path.join(folder, "platforms"))
    path = os.path.join(folder, "platforms", "devices.yaml")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(re.sub(r"(?m)^    compute_variation: .*$", f"    compute_variation: {device_variation}", text))


def figures_of(simsync, study, line, device_variation, folder):
    """MAPE of the scored rows in percent and the share of pairs of strategies, both as text; None where the study cannot
    be run so."""
    path, table = write_study(folder, study, line), os.path.join(folder, "cases.csv")
    environment = dict(os.environ)
    if device_variation is not None:
        environment["SIMSYNC_DATA"] = folder
    if os.path.exists(table):
        os.remove(table)
    done = subprocess.run([simsync, "validate", path, "--csv", table], env=environment, capture_output=True, text=True,
                          check=False)
    if not os.path.exists(table):
        print(f"{study}: {done.stderr.strip()}", file=sys.stderr)
        return None
    with open(table) as file:
        errors = [abs(float(row["error_pct"])) for row in csv.DictReader(file) if row["role"] == "scored"]
    summary = next(csv.DictReader(io.StringIO(done.stdout)))
    ranked = summary["strategy_accuracy"]
    return (sum(errors) / len(errors), f"; {float(ranked):.2f}" if ranked not in ("", "n/a") else "") if errors else None


def least(errors, studies):
    """The candidate with the least mean error over these studies."""
    return min(errors, key=lambda name: sum(errors[name][study][0] for study in studies))


def show(name, default, simsync):
    errors = {}
    for candidate, lines in default.candidates.items():
        with tempfile.TemporaryDirectory() as folder:
            device_variation = default.variation.get(candidate)
            if device_variation is not None:
                data_tree(folder, device_variation)
            errors[candidate] = {study: figures_of(simsync, study, line, device_variation, folder)
                                 for study, line in lines.items()}
    studies = [s for s in errors[default.chosen] if all(of[s] is not None for of in errors.values())]
    print(f"\n## {name}: the default is '{default.chosen}'\n")
    print("| value | " + " | ".join(studies) + " | mean |")
    print("|---" * (len(studies) + 2) + "|")
    for candidate, of in errors.items():
        mean = sum(of[s][0] for s in studies) / len(studies)
        print(f"| {candidate} | " + " | ".join(f"{of[s][0]:.1f}{of[s][1]}" for s in studies) + f" | {mean:.2f} |")
    print("\n| left out | the others choose | it has then | with the default | at best |\n|---|---|---|---|---|")
    for study in studies:
        chosen = least(errors, [s for s in studies if s != study])
        print(f"| {study} | {chosen} | {errors[chosen][study][0]:.1f} | "
              f"{errors[default.chosen][study][0]:.1f} | {min(of[study][0] for of in errors.values()):.1f} |")


def main():
    if len(sys.argv) < 2 or any(name not in DEFAULTS for name in sys.argv[2:]):
        sys.exit(__doc__)
    for name in sys.argv[2:] or DEFAULTS:
        show(name, DEFAULTS[name](), sys.argv[1])


if __name__ == "__main__":
    main()
