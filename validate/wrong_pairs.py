#!/usr/bin/env python3
"""Which cases a study's wrong pairs are due to.

    simsync validate autodist-g4dn --csv cases.csv
    validate/wrong_pairs.py cases.csv autodist-g4dn --error-pct 1.5

Pairs as pairwise_accuracy counts them: scored cases of equal model and batch whose measured steps differ by more than
--error-pct. A pair in the wrong order is put down to its case with the greater error, a pair with equal predictions (one
half) to neither. Groups are cells of --by (default: deviation, strategy, model, workers), whether the case is predicted
too fast or too slow, and how many of the pairs differ by less than --close percent.
"""
import argparse
import collections
import csv
import itertools


def scored(path, study):
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["study"] == study and row["role"] == "scored"]
    return [row for row in rows if row["predicted_step_time_s"]]


def pairs(rows, columns, error_pct):
    """Pairs whose order counts, with their measured difference in percent and predicted minus measured order."""
    key = lambda row: [row[column] for column in columns]
    for _, group in itertools.groupby(sorted(rows, key=key), key=key):
        for a, b in itertools.combinations(group, 2):
            measured = [float(row["measured_step_time_s"]) for row in (a, b)]
            predicted = [float(row["predicted_step_time_s"]) for row in (a, b)]
            apart = 100 * abs(measured[0] - measured[1]) / min(measured)
            if apart > error_pct:
                yield a, b, apart, (measured[0] - measured[1]) * (predicted[0] - predicted[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", help="what `simsync validate --csv` wrote")
    parser.add_argument("study")
    parser.add_argument("--error-pct", type=float, default=1.0, help="as in the study")
    parser.add_argument("--close", type=float, default=7.0, help="percent")
    parser.add_argument("--within", default="model,batch_per_worker", help="columns; add cluster,workers for strategies")
    parser.add_argument("--by", default="deviation,strategy,model,workers", help="columns")
    options = parser.parse_args()

    total, lost = 0, collections.Counter()
    close = collections.Counter()
    for a, b, apart, order in pairs(scored(options.cases, options.study), options.within.split(","), options.error_pct):
        total += 1
        if order > 0:
            continue
        if order == 0:
            cause = "equal predictions"
        else:
            worst = max(a, b, key=lambda row: abs(float(row["error_pct"])))
            too = "slow" if float(worst["error_pct"]) > 0 else "fast"
            cause = " ".join([worst[column] or "-" for column in options.by.split(",")] + [too])
        share = 0.5 if order == 0 else 1.0
        lost[cause] += share
        close[cause] += share * (apart < options.close)
    wrong = sum(lost.values())
    print(f"{wrong:g} of {total} pairs are wrong, {sum(close.values()):g} of them less than {options.close:g} % apart")
    for cause, count in lost.most_common():
        print(f"{count:7.1f}  ({close[cause]:g} close)  {cause}")


if __name__ == "__main__":
    main()
