// Names of the variables of a Kineto trace, which has none.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "models/trace/kineto_events.hpp"
#include "models/trace/traced_model.hpp"

namespace simsync::detail {

/// A gradient: the operator that accumulates it, and the forward operator that read its variable.
struct KinetoGradient {
  std::size_t op = 0;
  std::size_t forward = 0;
  std::string variable;
};

/// The modules of a trace (`nn.Module: Conv2d_0`), where its Python calls were recorded.
class KinetoModules {
public:
  explicit KinetoModules(const std::vector<KinetoRange>& calls);
  /// The innermost module that was running when the operator began; empty when none was.
  [[nodiscard]] std::string around(const KinetoOp& op) const;

private:
  std::map<int, std::vector<const KinetoRange*>> by_thread_;  ///< by begin
};

/// Names the gradients' variables by the module that reads them (`Conv2d_0/weight`), or by the forward operator,
/// counted in the order of the forward pass (`conv2d.0/weight`); adds to `hints` what they are.
void name_variables(std::vector<KinetoGradient>& gradients, const std::vector<KinetoOp>& ops,
                    const KinetoModules& modules, TraceHints& hints);

}  // namespace simsync::detail
