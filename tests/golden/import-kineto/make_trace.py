#!/usr/bin/python3
"""Records five training steps of a small network on a CPU and writes them as a trace of PyTorch's profiler.

Debian's PyTorch (python3-torch) is built without Kineto; models/trace/export_torch.py writes what its older profiler records
in Kineto's form.

    python3 make_trace.py trace.json.gz
"""
import pathlib
import sys

import torch
from torch.autograd import profiler

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "models" / "trace"))
from export_torch import write_trace  # noqa: E402 (the path comes first)

STEPS = 5
WARM_UP = 3


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
    return result


def main():
    write_trace(record(), sys.argv[1])


if __name__ == "__main__":
    main()
