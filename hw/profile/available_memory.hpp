// How much this machine can still give.
#pragma once
#include "base/units.hpp"

namespace simsync {

/// What a process may still use without others, or itself, being ended for lack of memory: what the kernel calls
/// available, or less where a control group (of a container or a batch job) allows less. The largest number where
/// neither is told.
Bytes available_memory();

}  // namespace simsync
