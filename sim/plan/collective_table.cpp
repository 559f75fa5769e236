#include "sim/plan/collective_table.hpp"

#include <cmath>

#include "sim/plan/collective_alone.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {

double CollectiveTable::time(const GroupCosts& group, const CollectiveKind& kind, double bytes) const {
  if (group.shape.ranks() < 2 || bytes <= 0.0) return 0.0;
  constexpr double kPerOctave = 8.0;
  static const double kStepSize = std::exp2(1.0 / kPerOctave);
  const auto below = static_cast<int>(std::floor(kPerOctave * std::log2(bytes)));
  const double low_size = std::exp2(below / kPerOctave);
  const double high_size = kStepSize * low_size;
  const double low = known({&group, kind.primitive, kind.algorithm, below}, low_size);
  const double high = known({&group, kind.primitive, kind.algorithm, below + 1}, high_size);
  const double share = (bytes - low_size) / (high_size - low_size);
  return low + share * (high - low) + collective_setup(cluster_.collective, bytes).value();
}

double CollectiveTable::known(const Size& size, double bytes) const {
  if (const auto found = known_.find(size); found != known_.end()) return found->second;
  const auto& [group, primitive, algorithm, step] = size;
  const CollectiveChoice choice = choose(primitive, algorithm, *group, bytes);
  const double time = group->alone->time(primitive, choice.algorithm, choice.protocol, bytes).value();
  return known_.emplace(size, time).first->second;
}

}  // namespace simsync::detail
