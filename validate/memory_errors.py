#!/usr/bin/env python3
"""What the memory of a step is worth: predicted against measured, and whether a step fits against whether it ran.

    validate/memory_errors.py build/release/cli/simsync

Asks `simsync predict` for every row of validate/reference/llm_memory.csv. A configuration that ran once fits, whatever
became of its other runs: the source counts failures of nodes and time-outs as crashes, too. Exit status 1 where a
measured row is more than 15 % off or less than 95 % of the configurations are told right.
"""
import csv
import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(FOLDER, "reference", "llm_memory.csv")
MODELS = {"llama-1B": "nanotron-llama-1b", "llama-8B": "nanotron-llama-8b", "llama-80B": "nanotron-llama-80b"}
CLUSTERS = {"H100-SXM5-80GB": "dgx-h100"}
# nanotron, src/nanotron/optim/gradient_accumulator.py: an fp32 copy of the weights that a rank updates, and a buffer of
# fp32 sums of all gradients also with ZeRO-1. src/nanotron/trainer.py, _init_model: without ZeRO the model is PyTorch's
# DistributedDataParallel, whose buckets hold gradients in bf16; with ZeRO-1 it is not.
HABITS = {"optimizer": "adam", "master_weights": "true", "fp32_gradients": "true"}
STRATEGIES = {"0": ["ddp"], "1": ["fsdp", "--set", "strategy.stage=1"]}
MOST_OFF_PCT = 15.0
LEAST_RIGHT_PCT = 95.0
GIB = 2.0**30
CONFIGURATION = ["model", "gpu", "gpus", "length", "batch", "micro_steps", "zero", "recompute", "precision"]


def predict(simsync, row):
    """Bytes that the step needs, and whether it is refused for them."""
    settings = HABITS | {"precision": row["precision"], "strategy.micro_steps": row["micro_steps"],
                         "strategy.recompute": row["recompute"], "model.length": row["length"]}
    command = [simsync, "predict", "--model", os.path.join(FOLDER, "models", MODELS[row["model"]] + ".yaml"),
               "--cluster", CLUSTERS[row["gpu"]], "--workers", row["gpus"], "--batch", row["batch"], "--csv", "-",
               "--strategy"] + STRATEGIES[row["zero"]]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    fits = checked.returncode == 0
    if not fits and "does not fit: " not in checked.stderr:
        raise RuntimeError(f"{' '.join(command)}: {checked.stderr}")
    text = subprocess.run(command + ["--set", "memory=ignore"], capture_output=True, text=True, check=True).stdout
    return float(next(csv.DictReader(text.splitlines()))["memory_bytes"]), fits


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(TABLE) as file:
        rows = list(csv.DictReader(file))
    configurations = {}
    for row in rows:
        configurations.setdefault(tuple(row[column] for column in CONFIGURATION), []).append(row)
    errors = []
    right = rows_right = 0
    print("id,needs_gib,measured_gib,error_pct,fits,status")
    for runs in configurations.values():
        needs, fits = predict(sys.argv[1], runs[0])
        right += fits == any(run["status"] == "ran" for run in runs)
        for run in runs:
            error = 100.0 * (needs / GIB / float(run["memory_gib"]) - 1.0) if run["memory_gib"] else None
            errors += [] if error is None else [error]
            rows_right += fits == (run["status"] == "ran")
            print(f"{run['id']},{needs / GIB:.1f},{run['memory_gib']},{'' if error is None else f'{error:.1f}'},"
                  f"{'yes' if fits else 'no'},{run['status']}")
    worst = max(errors, key=abs)
    right_pct = 100.0 * right / len(configurations)
    print(f"memory of {len(errors)} rows: mean absolute error {sum(map(abs, errors)) / len(errors):.1f} %, largest "
          f"{worst:+.1f} %; {right} of {len(configurations)} configurations told right ({right_pct:.1f} %), "
          f"{rows_right} of {len(rows)} rows", file=sys.stderr)
    sys.exit(abs(worst) > MOST_OFF_PCT or right_pct < LEAST_RIGHT_PCT)


if __name__ == "__main__":
    main()
