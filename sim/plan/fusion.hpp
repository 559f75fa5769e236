// Which gradients travel together, by the rule of the framework that is modelled.
#pragma once
#include <functional>
#include <vector>

#include "base/units.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// A gradient (or shard of one) that is all-reduced, in backward order.
struct Gradient {
  VariableId variable = 0;
  double bytes = 0.0;  ///< on the wire
  Seconds ready;       ///< after the start of the backward pass, on one device without communication
  int group = -1;      ///< AllReduceSynchronizer::group
  int priority = 0;
};

/// Gradients that travel as one message.
struct Bucket {
  std::vector<std::size_t> members;  ///< indices into the gradients, ascending
  double bytes = 0.0;
  int priority = 0;  ///< the most urgent of its members
  Seconds wait;      ///< between the last member being ready and the message being handed over
};

/// Buckets in the order in which they are launched.
///
/// `cost` is the time of one collective of so many bytes; only MergedGradient asks it.
///  - Buckets: open bucket takes gradients in backward order and closes once it holds `first_limit` bytes, later
///    ones once they hold `limit` (PyTorch DistributedDataParallel after its first iteration).
///  - Cycle: a loop wakes every `cycle` after backward began; what became ready since then is merged in ready
///    order while the sum stays within `threshold` (Horovod).
///  - MergedGradient: a message is merged into the next when that gradient is ready before the message could
///    start, or when waiting for it costs less than one message start-up (MG-WFBP).
std::vector<Bucket> fuse(const Fusion& rule, const std::vector<Gradient>& gradients,
                         const std::function<Seconds(double bytes)>& cost);

}  // namespace simsync
