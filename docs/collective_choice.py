#!/usr/bin/env python3
"""Where NCCL's choice (algorithm=auto) is over 2 % slower than the fastest algorithm (best), and why.

    python3 docs/collective_choice.py simsync --csv rows.csv [--clusters a,b] [--models a,b] [--workers 2,4]

Prints one line per cluster in Markdown; rows.csv has every combination. Without options: all built-in clusters, three
models, 2 to 128 workers (some six minutes on one core). Exit code 1: NCCL's estimate, made again, chooses otherwise
than auto, or no reason was found for a row. Needs python3-yaml.

Each row over 2 % is put to the test. NCCL's estimates are made again by nccl_estimate.py, which knows nothing of the
program's tuner, for the longest collectives of the step. Then one thing is changed, in the cluster or in NCCL's
estimate; the reason is the first change after which NCCL takes the better of its two algorithms, or loses under 2 %:

foreign         nothing to change: auto is within 2 % of the better of ring and tree, and best is neither
speed           NCCL sees the NIC's real speed
cap             streams have no cap of their own, which NCCL does not know
estimate        NCCL's estimate without the named terms (nccl_estimate.TERMS), as few as do it
speed and cap   both of these
socket          the link between sockets is fast: a tree loads it less than a ring, which NCCL does not count
"""
import argparse
import collections
import csv
import io
import itertools
import re
import subprocess
import sys

try:
    import nccl_estimate
except ImportError:
    print("python3-yaml is missing", file=sys.stderr)
    sys.exit(4)

LIMIT = 0.02
ALGORITHMS = ["auto", "best", "ring", "double-binary-tree"]
FOREIGN = "foreign"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simsync")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--clusters")
    parser.add_argument("--models", default="resnet50,bert-large,gpt2-xl")
    parser.add_argument("--workers", default="2,4,8,12,16,32,64,72,128")
    return parser.parse_args()


class Program:
    def __init__(self, options):
        self.options = options

    def run(self, *words):
        return subprocess.run([self.options.simsync, *words], capture_output=True, text=True, check=False).stdout

    def clusters(self):
        if self.options.clusters:
            return self.options.clusters.split(",")
        return [line.split()[0] for line in self.run("list", "clusters").splitlines() if line and not line[0].isspace()]

    def steps(self, cluster, algorithms, models, workers, settings=()):
        """{(model, workers): {algorithm: step in s}}"""
        extra = [word for setting in settings for word in ("--set", setting)]
        out = self.run("sweep", "--model", models, "--cluster", cluster, "--strategy", "ddp", "--workers", workers,
                       "--set", "strategy.algorithm=" + ",".join(algorithms), *extra, "--csv", "-")
        found = collections.defaultdict(dict)
        for row in csv.DictReader(io.StringIO(out)):
            algorithm = row["settings"].split("strategy.algorithm=")[1].split(";")[0]
            found[row["model"], int(row["workers"])][algorithm] = float(row["step_time_s"])
        return {key: steps for key, steps in found.items() if len(steps) == len(algorithms)}

    def collectives(self, cluster, model, workers):
        """[(payload in bytes, ring or tree)] of the longest ones of a step with auto."""
        text = self.run("predict", "--model", model, "--cluster", cluster, "--strategy", "ddp", "--workers",
                        str(workers), "--explain")
        units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        found = re.findall(r"^  .*? +([\d.]+) ([KMG]?i?B) .* by (ring|double-binary-tree)", text, re.MULTILINE)
        return [(float(size) * units[unit], algorithm.split("-")[-1]) for size, unit, algorithm in found]


def loss(steps):
    """Of auto against the better of NCCL's two algorithms."""
    return steps["auto"] / min(steps["ring"], steps["double-binary-tree"]) - 1


class Row:
    def __init__(self, program, view, cluster, key, steps):
        self.program, self.view, self.cluster, self.key, self.steps = program, view, cluster, key, steps
        self.reason, self.agrees = "", ""

    @property
    def over_best(self):
        return self.steps["auto"] / self.steps["best"] - 1

    def explain(self):
        if self.over_best <= LIMIT:
            return
        model, workers = self.key
        nodes = -(-workers // self.view.gpus)
        collectives = self.program.collectives(self.cluster, model, workers)
        other = [size for size, algorithm in collectives
                 if nccl_estimate.choice(self.view, workers, nodes, size) != algorithm]
        self.agrees = "yes" if collectives and not other else "no"
        self.reason = FOREIGN if loss(self.steps) <= LIMIT else self.own_reason(workers, nodes, collectives)

    def own_reason(self, workers, nodes, collectives):
        """Why NCCL takes the slower of its two algorithms."""
        socket = [f"link.{self.view.socket_class}.bandwidth=1TB/s"] if self.view.socket else []
        known = [f"link.{self.view.nic_class}.reported_bandwidth=none"] if self.view.reports_other else []
        uncapped = [f"link.{link}.per_flow_cap=none" for link in self.view.capped]
        if known and self.changed(known):
            return "speed"
        if uncapped and self.changed(uncapped):
            return "cap"
        for count in range(1, len(nccl_estimate.TERMS) + 1):
            for without in itertools.combinations(nccl_estimate.TERMS, count):
                if self.flips(workers, nodes, collectives, without):
                    return "estimate (" + " ".join(without) + ")"
        if socket and self.changed(socket):
            return "socket"
        if known and uncapped and self.changed(known + uncapped):
            return "speed and cap"
        return ""

    def changed(self, settings):
        """Whether auto is right in a cluster with these settings."""
        steps = self.program.steps(self.cluster, ["auto", "ring", "double-binary-tree"], self.key[0], str(self.key[1]),
                                   settings)
        return loss(steps[self.key]) <= LIMIT

    def flips(self, workers, nodes, collectives, without):
        """Whether NCCL would take the faster algorithm for most of the longest collectives but for these terms."""
        faster = "ring" if self.steps["ring"] < self.steps["double-binary-tree"] else "tree"
        chosen = [nccl_estimate.choice(self.view, workers, nodes, size, without) for size, _ in collectives]
        return chosen.count(faster) > len(chosen) / 2

    def cells(self):
        return [self.cluster, *self.key, *(f"{self.steps[a]:.6g}" for a in ALGORITHMS),
                f"{100 * self.over_best:.1f}", f"{100 * loss(self.steps):.1f}", self.agrees, self.reason]


def spread(values):
    low, high = (f"{100 * value:.0f}" for value in (min(values), max(values)))
    return f"{low} to {high} %" if low != high else f"{low} %"


def summary(rows):
    """Of rows over the limit: one line per cluster."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row.cluster].append(row)
    print("| cluster | rows | workers | auto over best | auto over ring or tree | reasons |\n|---|---|---|---|---|---|")
    for cluster, members in groups.items():
        workers = sorted({row.key[1] for row in members})
        count = f"{workers[0]} to {workers[-1]}" if len(workers) > 1 else str(workers[0])
        reasons = collections.Counter(row.reason.split(" (")[0] or "none found" for row in members)
        print(f"| {cluster} | {len(members)} | {count} | {spread([r.over_best for r in members])} "
              f"| {spread([max(0.0, loss(r.steps)) for r in members])} "
              f"| {', '.join(f'{reason} {n}' for reason, n in reasons.most_common())} |")


def main():
    options = arguments()
    program, rows = Program(options), []
    with open(options.csv, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["cluster", "model", "workers", *(a.replace("-", "_") + "_s" for a in ALGORITHMS),
                         "auto_over_best_pct", "auto_over_ring_or_tree_pct", "nccl_estimate_agrees", "reason"])
        for cluster in program.clusters():
            view = nccl_estimate.View(cluster)
            for key, steps in program.steps(cluster, ALGORITHMS, options.models, options.workers).items():
                rows.append(Row(program, view, cluster, key, steps))
                rows[-1].explain()
                writer.writerow(rows[-1].cells())
            out.flush()
    over = [row for row in rows if row.over_best > LIMIT]
    summary(over)
    own = [row for row in over if loss(row.steps) > LIMIT]
    otherwise, unexplained = sum(row.agrees == "no" for row in over), sum(not row.reason for row in over)
    print(f"\n{len(rows)} combinations. auto is over 2 % slower than best in {len(over)}, than the better of ring and "
          f"tree in {len(own)}. NCCL's estimate, made again, chooses otherwise than auto in "
          f"{otherwise}; no reason found for {unexplained}.")
    return 1 if otherwise or unexplained or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
