// Traces of other systems.
#pragma once
#include <string>
#include <vector>

#include "models/trace/traced_model.hpp"

namespace simsync {

/// A trace as its source told it.
struct ImportedTrace {
  Trace trace;
  TraceHints hints;
  std::vector<std::string> notes;  ///< what was left out of it, and why
  std::vector<Seconds> wall;       ///< by step: from its begin to its end, waiting included; empty when not told
  std::string device;              ///< as the source calls it; empty when not told
};

/// Steps of PyTorch's profiler (Kineto; .json or .json.gz). Compute operations are the kernels of the device without
/// NCCL's and without copies to or from the host, or the outermost operators where nothing ran on a device. Every
/// gradient that is accumulated is a variable; it is sent then, and was received when the forward operator of its
/// gradient function began. Operators of optimizers and data loaders are left out. Memory: the operators of the file,
/// without their arguments.
/// @throws InputError naming what the trace lacks: steps, a backward pass, the shapes of the gradients.
ImportedTrace import_kineto(const std::string& path);

/// Steps of a TensorFlow session with one worker and parameter servers, one file each: RunMetadata (or StepStats) as
/// JSON, or a timeline in Chrome's format. A variable is what an Apply operation of a server updates; its gradient is
/// sent when the worker has made it.
/// @throws InputError naming what the trace lacks: a server's operations, the bytes of a variable, one worker.
ImportedTrace import_tensorflow(const std::vector<std::string>& paths);

}  // namespace simsync
