"""Writes what PyTorch's older profiler recorded in the form that `simsync import kineto` reads.

A PyTorch without Kineto, such as Debian's python3-torch, records operators with their times, threads, sequence numbers and
shapes, but its export_chrome_trace() writes names and times alone. Record whole training steps and mark each of them:

    from torch.autograd import profiler
    from export_torch import write_trace

    with profiler.profile(record_shapes=True, use_kineto=False) as recorded:
        for _ in range(5):
            with profiler.record_function("ProfilerStep#"):
                train_step()
    write_trace(recorded, "trace.json.gz")
"""
import gzip
import json

USER_SCOPE = 7


def kineto_event(event, step):
    """One operator in Kineto's form; `step` is the number of a marked step."""
    name, category, arguments = event.name, "cpu_op", {}
    if event.scope == USER_SCOPE:
        category = "user_annotation"
        if name.startswith("ProfilerStep"):
            name = "ProfilerStep#%d" % step
    if event.sequence_nr >= 0:
        arguments.update({"Fwd thread id": event.fwd_thread, "Sequence number": event.sequence_nr})
    if event.input_shapes:
        arguments["Input Dims"] = event.input_shapes
        # The profiler tells no types: gradients are taken as numbers of four bytes.
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


def trace_of(recorded):
    """The trace of a finished torch.autograd.profiler.profile."""
    ordered = sorted(recorded.function_events, key=lambda event: (event.time_range.start, -event.time_range.elapsed_us()))
    events, step = [], 0
    for event in ordered:
        events.append(kineto_event(event, step))
        step += event.scope == USER_SCOPE and event.name.startswith("ProfilerStep")
    return {"schemaVersion": 1, "record_shapes": 1, "traceEvents": events}


def write_trace(recorded, path):
    """Writes the trace to `path`, compressed."""
    with gzip.GzipFile(path, "wb", 9, mtime=0) as file:
        file.write(json.dumps(trace_of(recorded), separators=(",", ":")).encode())
