#!/usr/bin/env python3
"""Whether a layout fits into memory against whether it ran, for tensor x pipeline x data parallelism and ZeRO-1.

    validate/layout_memory_errors.py build/release/cli/simsync [EVERY]

Asks `simsync predict` for every row of validate/reference/nanotron.csv, or for every EVERY-th. The source counts
failures of nodes and time-outs as crashes, too, which no prediction tells; so the two shares are given apart, and their
mean (balanced accuracy). Exit status 1 where that is below 90 %.
"""
import csv
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FOLDER = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(FOLDER, "reference", "nanotron.csv")
MODELS = {"llama-1B": ["nanotron-llama-1b"], "llama-8B": ["nanotron-llama-8b"], "llama-80B": ["nanotron-llama-80b"],
          "llama-80B-gqa": ["nanotron-llama-80b", "--set", "model.key_heads=8"]}
# As in validate/studies/nanotron.yaml, and with a buffer of fp32 sums of all gradients (memory_errors.py).
HABITS = {"precision": "bf16", "optimizer": "adam", "master_weights": "true", "fp32_gradients": "true",
          "strategy.sequence": "true"}
STRATEGIES = {"0": ["ddp"], "1": ["fsdp", "--set", "strategy.stage=1", "--set", "strategy.reduce_dtype=float32"]}
LEAST_RIGHT_PCT = 90.0
MISFIT = "does not fit"


def verdict(simsync, row):
    """`fits`, `misfit`, or `impossible`: more stages than blocks."""
    name, *variant = MODELS[row["model"]]
    blocks = "threshold" if row["pipeline"] in ("2", "4", "8") and row["model"] != "llama-1B" else "balanced"
    settings = HABITS | {"strategy.micro_steps": row["micro_steps"], "strategy.tensor": row["tensor"],
                         "strategy.pipeline": row["pipeline"]}
    if row["pipeline"] != "1":
        settings["strategy.stage_blocks"] = blocks
    command = [simsync, "predict", "--model", os.path.join(FOLDER, "models", name + ".yaml"), *variant, "--cluster",
               "dgx-h100", "--workers", row["gpus"], "--batch", row["batch"], "--export", "signatures", "--strategy",
               *STRATEGIES[row["zero"]]]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode == 0:
        return "fits"
    return "misfit" if MISFIT in run.stderr else "impossible"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(TABLE) as file:
        rows = list(csv.DictReader(file))[::int(sys.argv[2]) if len(sys.argv) == 3 else 1]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda row: verdict(sys.argv[1], row), rows))
    counts = {}
    print("id,verdict,status")
    for row, told in zip(rows, verdicts):
        print(f"{row['id']},{told},{row['status']}")
        key = (row["status"] == "ran", told == "fits")
        counts[key] = counts.get(key, 0) + 1
    shares = []
    for ran in (True, False):
        right, all_rows = counts.get((ran, ran), 0), counts.get((ran, True), 0) + counts.get((ran, False), 0)
        shares.append(100.0 * right / all_rows)
        print(f"{right} of {all_rows} that {'ran are told to fit' if ran else 'did not run are told not to'} "
              f"({shares[-1]:.1f} %)", file=sys.stderr)
    balanced = sum(shares) / len(shares)
    print(f"balanced accuracy {balanced:.1f} %; {verdicts.count('impossible')} rows have more stages than blocks",
          file=sys.stderr)
    sys.exit(balanced < LEAST_RIGHT_PCT)


if __name__ == "__main__":
    main()
