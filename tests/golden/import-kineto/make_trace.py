#!/usr/bin/python3
"""Records five training steps of a small network on a CPU and writes them as a trace of PyTorch's profiler.

Debian's PyTorch (python3-torch) is built without Kineto, so that its profiler has no such traces. What its older profiler
records, of the same operators (times, threads, sequence numbers, shapes), is written in Kineto's form here.

    python3 make_trace.py trace.json.gz
"""
import gzip
import json
import sys

import torch
from torch.autograd import profiler

STEPS = 5
WARM_UP = 3
USER_SCOPE = 7


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
    )


def train_step(net, optimizer, loss):
    samples, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
    optimizer.zero_grad()
    loss(net(samples), labels).backward()
    optimizer.step()


def record():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(WARM_UP):
        train_step(net, optimizer, loss)
    with profiler.profile(record_shapes=True, use_kineto=False) as result:
        for _ in range(STEPS):
            with profiler.record_function("ProfilerStep#0"):
                train_step(net, optimizer, loss)
    return result.function_events


def kineto_event(event, steps):
    name, category, arguments = event.name, "cpu_op", {}
    if event.scope == USER_SCOPE:
        category = "user_annotation"
        if name.startswith("ProfilerStep"):
            name = "ProfilerStep#%d" % next(steps)
    if event.sequence_nr >= 0:
        arguments.update({"Fwd thread id": event.fwd_thread, "Sequence number": event.sequence_nr})
    if event.input_shapes:
        arguments["Input Dims"] = event.input_shapes
        arguments["Input type"] = ["float" if shape else "" for shape in event.input_shapes]
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": event.thread,
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "args": arguments,
    }


def main():
    steps = iter(range(STEPS))
    events = sorted(record(), key=lambda event: (event.time_range.start, -event.time_range.elapsed_us()))
    trace = {"schemaVersion": 1, "record_shapes": 1, "traceEvents": [kineto_event(e, steps) for e in events]}
    with gzip.GzipFile(sys.argv[1], "wb", 9, mtime=0) as file:
        file.write(json.dumps(trace, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
