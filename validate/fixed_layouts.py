#!/usr/bin/env python3
"""The layout that a search finds against fixed layouts: the table of strategies/layouts/README.md.

    validate/fixed_layouts.py build/release/cli/simsync

Data: plain data parallelism. ZeRO: with the best stage of ZeRO. Megatron: as many tensor-parallel ranks as a node has
GPUs, 4 where it has one, layers split by its rule, no pipeline. 3-D: both, the best of 2 to 8 tensor-parallel ranks and 2 to 8 stages with any
schedule and the same rule. Each is the best replayed layout of a search so restricted, with the same samples in a step and memory counted;
its step time is given over that of the search without restriction.
"""
import csv
import os
import subprocess
import sys
import tempfile

# Model, its settings, cluster, ranks, samples of a rank, GPUs of a node.
CASES = [
    ("vgg16", ["model.deep=2"], "gce-p100", 16, 32, 1),
    ("vgg16", ["model.deep=2"], "gce-p100", 64, 32, 1),
    ("vgg16", [], "gce-p100", 16, 32, 1),
    ("vgg16", [], "gce-p100", 64, 32, 1),
    ("vgg16", [], "titanx-40gbe", 16, 32, 1),
    ("vgg16", ["model.deep=2"], "titanx-40gbe", 16, 32, 1),
    ("vgg16", [], "dgx-1", 64, 32, 8),
    ("vgg16", [], "dgx-a100", 64, 32, 8),
    ("vit-l", ["precision=amp"], "v100-pcie-rdma100g", 16, 4, 1),
    ("vit-l", [], "gce-v100", 16, 4, 1),
    ("vit-l", ["precision=amp"], "dgx-a100", 64, 4, 8),
    ("gpt2-large", ["precision=amp"], "v100-pcie-rdma100g", 16, 4, 1),
    ("gpt2-large", ["precision=amp"], "dgx-a100", 64, 4, 8),
]
DATA = ["space.tensor=1", "space.pipeline=1"]


def best(simsync, case, restriction):
    """Step time and layout of the best replayed layout, or "impossible" where there is none."""
    model, settings, cluster, ranks, samples, _ = case
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "layouts.csv")
        command = [simsync, "search", "--model", model, "--cluster", cluster, "--workers", str(ranks), "--global-batch",
                   str(ranks * samples), "--method", "coordinate", "--csv", rows]
        for setting in settings + restriction:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "no layout is possible" in done.stderr:
            return None, "impossible"
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        with open(rows) as file:
            replayed = [row for row in csv.DictReader(file) if row["replay_s"]]
    first = min(replayed, key=lambda row: float(row["replay_s"]))
    named = [f"{column} {first[column]}" for column in ("tensor", "pipeline", "chunks") if first[column] != "1"]
    named += [first["schedule"]] if first["pipeline"] != "1" else []
    named += [f"ZeRO {first['zero']}"] if first["zero"] != "0" else []
    named += [first["splits"]] if first["splits"] else []
    named += [f"recompute {first['recompute']}"] if first["recompute"] != "none" else []
    return float(first["replay_s"]), ", ".join(named)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("| model | cluster (GPUs a node) | ranks | data | ZeRO | Megatron | 3-D | found |")
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        model, settings, cluster, ranks, _, gpus = case
        restrictions = [DATA + ["space.zero=0"], DATA, [f"space.tensor={gpus if gpus > 1 else 4}", "space.pipeline=1",
                         "space.splits=rule"], ["space.tensor=2,4,8", "space.pipeline=2,4,8", "space.splits=rule"]]
        found, layout = best(sys.argv[1], case, [])
        cells = []
        for restriction in restrictions:
            time, reason = best(sys.argv[1], case, restriction)
            cells.append(f"{time / found:.2f}" if time else reason)
        name = ", ".join([model] + [setting.replace("precision=", "") for setting in settings])
        print(f"| {name} | {cluster} ({gpus}) | {ranks} | {' | '.join(cells)} | {layout} |", flush=True)


if __name__ == "__main__":
    main()
