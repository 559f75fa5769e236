#!/usr/bin/env python3
"""Makes the tables in data/ from what measure_searches.sh measured.

    make_tables.py SIMSYNC FOLDER   all tables
    make_tables.py SIMSYNC          the accuracies alone, from data/measured-trials.csv

Accuracies take half an hour on two processors; for them simulated trials are made as well.
"""
import concurrent.futures
import csv
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).parent / "data"
MODELS = ("vgg16", "resnet50", "bert-base")
HOSTS = ("alike", "unequal")
RANKERS = ("linear", "autosync-linear", "boosted", "recurrent")  # named, so that a build that lacks one fails
SIMULATED = (("resnet50", "g4dn.12xlarge", 16), ("vgg16", "g4dn.12xlarge", 16), ("alexnet", "titanx-40gbe", 8), ("densenet121", "dgx-1", 16))


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def write_rows(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path.name}: {len(rows)} rows", flush=True)


def shortened(column, text):
    """Six digits of a time, five of other numbers, which leaves the accuracy of rankers as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    if column in ("strategy_id", "trial", "round") or value == int(value):
        return text
    return f"{value:.{6 if column.endswith('_s') else 5}g}"


def domain_name(row):
    return f"{row['model']} {'unequal' if '500mbps-' in row['cluster'] else 'alike'}"


def measured_trials(folder):
    """Each trial of each search, the guided ones of a model and cluster first."""
    out = []
    names = [f"{model}-{hosts}" for model, hosts in itertools.product(MODELS, HOSTS)] + ["gnmt-eight"]
    for name, search in itertools.product(names, ("200", "random")):
        if (name, search) == ("gnmt-eight", "200") or (name.startswith("bert-base"), search) == (True, "random"):
            continue  # measure_searches.sh has no such search
        for row in read_rows(folder / f"{name}.{search}.csv"):
            out.append({"search": "guided" if search == "200" else "random",
                        **{column: shortened(column, text) for column, text in row.items()}})
    return out


def winners(folder):
    out = []
    for model, hosts in itertools.product(MODELS, HOSTS):
        runs = range(1, 1 + len(list(folder.glob(f"{model}-{hosts}.builder.run*.csv"))))
        for run, winner in itertools.product(runs, ("200", "20", "simulator", "builder")):
            row = read_rows(folder / f"{model}-{hosts}.{winner}.run{run}.csv")[0]
            out.append({"cluster": row["cluster"], "model": model, "winner": winner + " trials" * winner.isdigit(),
                        "strategy": row["strategy"] if winner == "builder" else "", "run": run, "step_time_s": row["step_time_s"]})
    return out


def searches(folder):
    """What each search of 200 trials took and cost, and how long its simulated counterpart took."""
    out = []
    for model, hosts in itertools.product(MODELS, HOSTS):
        name = folder / f"{model}-{hosts}"
        report = name.with_name(name.name + ".200.txt").read_text(encoding="utf-8")
        hours, dollars = re.search(r"^\s*cost\s+(\S+) node-hours.*: (\S+)$", report, re.MULTILINE).groups()
        took = {kind: path.read_text(encoding="utf-8").strip() if path.exists() else ""
                for kind in ("200", "simulator") for path in [name.with_name(f"{name.name}.{kind}.took")]}
        out.append({"cluster": read_rows(name.with_name(name.name + ".200.csv"))[0]["cluster"], "model": model,
                    "took_s": took["200"], "node_hours": hours, "dollars": dollars, "simulated_took_s": took["simulator"]})
    return out


def ranked(simsync, tables, *flags):
    """Rows of `simsync rank`, whose notes and errors are shown."""
    ran = subprocess.run([simsync, "rank", *map(str, tables), *map(str, flags), "--csv", "-"], check=True, stdout=subprocess.PIPE, text=True)
    return list(csv.DictReader(ran.stdout.splitlines()))


def side_by_side(tasks):
    """What two processes at a time say, in order."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [row for rows in pool.map(lambda task: task(), tasks) for row in rows]


def simulated_trials(simsync, folder):
    out = []
    for model, cluster, workers in SIMULATED:
        out.append(folder / f"{model}-{cluster}.csv")
        subprocess.run([simsync, "search", "--model", model, "--cluster", cluster, "--workers", str(workers), "--method", "random",
                        "--trials", "250", "--csv", out[-1]], check=True, stdout=subprocess.DEVNULL)
    return out


def rounded(row, **names):
    return {**names, **{column: row[column] for column in ("trained_on", "seed", "held_out_trials")},
            "accuracy": f"{float(row['accuracy']):.4f}"}


def ranker_accuracy(simsync, measured, simulated):
    tasks = [lambda table=table: ranked(simsync, [table], "--ranker", ",".join(RANKERS), "--held-out", "0.2") for table in [measured, *simulated]]
    return [rounded(row, cluster=row["cluster"], model=row["model"], evaluator=row["evaluator"], ranker=row["ranker"])
            for row in side_by_side(tasks)]


def guided_files(folder):
    """A table for each model and hosts, by their names."""
    domains = {}
    for row in read_rows(DATA / "measured-trials.csv"):
        if row["search"] == "guided":
            domains.setdefault(domain_name(row), []).append(row)
    out = {name: folder / f"{name.replace(' ', '-')}.csv" for name in domains}
    for name, path in out.items():
        write_rows(path, domains[name])
    return out


def transfer_accuracy(simsync, files):
    """Of each model and cluster after each other, by guided trials."""

    def task(target, source):
        rows = ranked(simsync, [files[target]], "--source", files[source], "--ranker", "linear,boosted", "--train", "0,2,3,5,10,20,50",
                      "--held-out", "0.25")
        return [{"target": target, "source": source, "ranker": row["ranker"], "start": row["start"], **rounded(row)} for row in rows]

    return side_by_side([lambda pair=pair: task(*pair) for pair in itertools.permutations(files, 2)])


def seed_means(rows):
    """The mean accuracy over seeds of rows that are alike but for seed and accuracy."""
    groups = {}
    for row in rows:
        groups.setdefault((row["ranker"], row["start"], row["trained_on"]), []).append(float(row["accuracy"]))
    return [{"ranker": ranker, "start": start, "trained_on": train, "accuracy": f"{sum(values) / len(values):.4f}"}
            for (ranker, start, train), values in groups.items() if start]


def worth_accuracy(simsync, files):
    """As ranker_accuracy and transfer_accuracy, for other worths of the simulator and the source."""
    flags = ("--ranker", "linear,boosted", "--held-out", "0.25")

    def simulator(worth, target):
        rows = ranked(simsync, [files[target]], *flags, "--train", "2,3,5,10,20,50,100", "--simulator-worth", worth)
        return [{"of": "simulator", "worth": worth, "target": target, "source": "", **row} for row in seed_means(rows)]

    def source(worth, target, source):
        rows = ranked(simsync, [files[target]], *flags, "--train", "0,5,10,20,50", "--source", files[source], "--source-worth", worth)
        return [{"of": "source", "worth": worth, "target": target, "source": source, **row} for row in seed_means(rows)
                if row["start"] == "transfer"]

    tasks = [lambda case=case: simulator(*case) for case in itertools.product(("0", "10", "20", "40", "80", "160"), files)]
    tasks += [lambda worth=worth, pair=pair: source(worth, *pair)
              for worth, pair in itertools.product(("1", "3", "10", "30", "100"), itertools.permutations(files, 2))]
    return side_by_side(tasks)


def main(simsync, folder=None):
    if folder:
        write_rows(DATA / "measured-trials.csv", measured_trials(pathlib.Path(folder)))
        write_rows(DATA / "winners.csv", winners(pathlib.Path(folder)))
        write_rows(DATA / "searches.csv", searches(pathlib.Path(folder)))
    with tempfile.TemporaryDirectory() as temporary:
        simulated = simulated_trials(simsync, pathlib.Path(temporary))
        write_rows(DATA / "ranker-accuracy.csv", ranker_accuracy(simsync, DATA / "measured-trials.csv", simulated))
        files = guided_files(pathlib.Path(temporary))
        write_rows(DATA / "transfer-accuracy.csv", transfer_accuracy(simsync, files))
        write_rows(DATA / "worth-accuracy.csv", worth_accuracy(simsync, files))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
