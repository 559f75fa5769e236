#!/usr/bin/env python3
"""What one parameter server of CM-DARE spends on a variable and on a byte, in closed form.

    python3 validate/server_cost.py validate/reference/cmdare.csv [--without MODEL --calibration FILE]

A round of a worker takes the server S = a * variables + b * bytes and the worker Z: a closed network with one station (exact mean
value analysis, sim/plan/closed_network.hpp). Z follows from each curve's run on two workers; a and b are fitted to the logarithm of
the throughput on eight workers (least squares). Prints both with one standard deviation, from the residuals, for several choices of
curves; writes those without MODEL as a calibration for gce-p100. Needs python3-numpy.
"""
import argparse
import csv
import datetime
import math

import numpy as np

# Trainable variables and parameters of four bytes: cmdare_models.csv of CM-DARE, and validate/models/t2t-*.yaml.
MODELS = {"res15": (50, 693818), "res32": (104, 1857722), "shakesmall": (216, 2926986), "shakebig": (216, 26204362)}
SATURATED, PAIR = 8, 2
# A cost that moves the throughput by less than this share of its own change is not identified.
LEAST_EFFECT = 1e-3


def throughput(delay, demand, workers):
    queue = 0.0
    for n in range(1, workers + 1):
        response = demand * (1 + queue)
        rate = n / (delay + response)
        queue = rate * response
    return rate


def demand(cost, model):
    variables, parameters = MODELS[model]
    return cost[0] * variables + cost[1] * 4 * parameters


def delay(server, rate):
    """With which two workers reach `rate`."""
    low, high = 0.0, 2 / rate
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if throughput(middle, server, PAIR) > rate else (low, middle)
    return low


def residuals(logs, curves, rates):
    out = []
    for series, model in curves:
        server = demand(np.exp(logs), model)
        found = throughput(delay(server, rates[series, model, PAIR]), server, SATURATED)
        out.append(math.log(found / rates[series, model, SATURATED]))
    return np.array(out)


def fit(curves, rates):
    """(cost, covariance of its logarithms, residuals) by Gauss and Newton."""
    logs, step = np.log([1e-4, 1.2e-9]), 1e-4
    for _ in range(60):
        at = residuals(logs, curves, rates)
        slope = np.array([(residuals(logs + step * e, curves, rates) - at) / step for e in np.eye(2)]).T
        logs = logs - np.clip(np.linalg.pinv(slope) @ at, -0.5, 0.5)
    at = residuals(logs, curves, rates)
    spread = at @ at / max(1, len(curves) - 2)
    covariance = np.linalg.pinv(slope.T @ slope) * spread
    for i in np.flatnonzero(np.linalg.norm(slope, axis=0) < LEAST_EFFECT):
        covariance[i, i] = math.inf
    return np.exp(logs), covariance, at


def rms_pct(errors):
    return 100 * math.sqrt(errors @ errors / len(errors))


def calibration(cost, covariance, errors, without):
    deviation = np.sqrt(np.diag(covariance))
    # Time goes up with the cost of a variable and down with the rate.
    correlation = -covariance[0, 1] / deviation.prod()
    return f"""schema: simsync/calibration/v1
cluster: gce-p100
date: {datetime.date.today()}
sources:
  - "validate/server_cost.py validate/reference/cmdare.csv: runs on 8 P100 of all models but {without}"
rows: {len(errors)}
residuals: {{rms_pct: {rms_pct(errors):.3g}, median_pct: {100 * np.median(abs(errors)):.3g}, worst_pct: {100 * abs(errors).max():.3g}}}
parameters:
  - {{key: group.server.cpu.per_tensor, value: {cost[0] / 2:.6g}s, scale: log, deviation: {deviation[0]:.6g}}}
  - {{key: group.server.cpu.update_rate, value: {1 / cost[1]:.9g}B/s, scale: log, deviation: {deviation[1]:.6g}}}
correlation:
  - [1]
  - [{correlation:.6g}, 1]
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--without", choices=MODELS)
    parser.add_argument("--calibration")
    given = parser.parse_args()
    with open(given.table, newline="", encoding="utf-8") as table:
        rates = {(r["series"], r["model"], int(r["workers"])): float(r["steps_per_s"]) for r in csv.DictReader(table)}
    p100 = [("cmdare-p100", m) for m in MODELS]
    k80 = [("cmdare-k80", m) for m in MODELS]
    choices = {"P100": p100, "K80": k80, "P100 and K80": p100 + k80}
    choices.update({f"P100 without {m}": [c for c in p100 if c[1] != m] for m in MODELS})
    for name, curves in choices.items():
        cost, covariance, errors = fit(curves, rates)
        share = [f"+-{100 * math.sqrt(v):.0f} %" if math.isfinite(v) else "not identified" for v in np.diag(covariance)]
        print(f"{name}: {1e3 * cost[0]:.3f} ms a variable ({share[0]}), {1e9 * cost[1]:.2f} ms a MB ({share[1]}), "
              f"rms {rms_pct(errors):.1f} % of {len(curves)} curves")
        if given.calibration and name == f"P100 without {given.without}":
            with open(given.calibration, "w", encoding="utf-8") as out:
                out.write(calibration(cost, covariance, errors, given.without))


if __name__ == "__main__":
    main()
