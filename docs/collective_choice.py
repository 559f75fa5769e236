#!/usr/bin/env python3
"""Steps with algorithm=auto against algorithm=best: rows where they differ by more than 2 %, as a Markdown table.

    python3 docs/collective_choice.py simsync [--clusters a,b] [--models a,b] [--workers 2,4]

Without options: all built-in clusters, three models, 2 to 128 workers (half an hour on one core).
"""
import argparse
import csv
import io
import subprocess

ALGORITHMS = ["auto", "best", "ring", "double-binary-tree"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simsync")
    parser.add_argument("--clusters")
    parser.add_argument("--models", default="resnet50,bert-large,gpt2-xl")
    parser.add_argument("--workers", default="2,4,8,12,16,32,64,72,128")
    return parser.parse_args()


def steps(options, cluster, algorithm):
    """(model, workers) -> step time in seconds."""
    command = [options.simsync, "sweep", "--model", options.models, "--cluster", cluster, "--strategy", "ddp",
               "--workers", options.workers, "--set", "strategy.algorithm=" + algorithm, "--csv", "-"]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {(row["model"], int(row["workers"])): float(row["step_time_s"]) for row in csv.DictReader(io.StringIO(out))}


def clusters_of(options):
    if options.clusters:
        return options.clusters.split(",")
    out = subprocess.run([options.simsync, "list", "clusters"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines() if line and not line[0].isspace()]


def main():
    options = arguments()
    compared = differ = beyond = 0
    print("| cluster | model | workers | auto s | best s | ring s | tree s | auto over best | auto over ring or tree |")
    print("|---|---|---|---|---|---|---|---|---|")
    for cluster in clusters_of(options):
        found = {algorithm: steps(options, cluster, algorithm) for algorithm in ALGORITHMS}
        for key, auto in found["auto"].items():
            if any(key not in found[algorithm] for algorithm in ALGORITHMS):
                continue
            best, ring, tree = (found[algorithm][key] for algorithm in ALGORITHMS[1:])
            compared += 1
            loss, own = auto / best - 1, auto / min(ring, tree) - 1
            differ += loss > 0.02
            beyond += own > 0.02
            if loss > 0.02:
                print(f"| {cluster} | {key[0]} | {key[1]} | {auto:.4g} | {best:.4g} | {ring:.4g} | {tree:.4g} "
                      f"| {100 * loss:+.1f} % | {100 * own:+.1f} % |")
    print(f"\n{compared} combinations; auto is more than 2 % slower than best in {differ}, than NCCL's other algorithm in {beyond}.")


if __name__ == "__main__":
    main()
