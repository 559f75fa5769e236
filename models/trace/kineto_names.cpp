#include "models/trace/kineto_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace simsync::detail {
namespace {

LayerKind kind_of(const std::string& op) {
  static const std::array<std::pair<const char*, LayerKind>, 9> kKinds{{{"conv", LayerKind::Conv},
                                                                        {"norm", LayerKind::Norm},
                                                                        {"embedding", LayerKind::Embedding},
                                                                        {"attention", LayerKind::Attention},
                                                                        {"lstm", LayerKind::Recurrent},
                                                                        {"gru", LayerKind::Recurrent},
                                                                        {"linear", LayerKind::Dense},
                                                                        {"addmm", LayerKind::Dense},
                                                                        {"matmul", LayerKind::Dense}}};
  for (const auto& [part, kind] : kKinds) {
    if (op.find(part) != std::string::npos) return kind;
  }
  return LayerKind::Elementwise;
}

/// The forward operator's own name: `conv2d`.
std::string short_name(const KinetoOp& op) {
  return std::string(op.name.starts_with("aten::") ? op.name.substr(6) : op.name);
}

/// Of two variables the weight has the most axes.
void name_members(std::vector<KinetoGradient*>& members, const std::vector<KinetoOp>& ops, const std::string& folder) {
  std::stable_sort(members.begin(), members.end(), [&](const KinetoGradient* a, const KinetoGradient* b) {
    return ops[a->op].shape.size() > ops[b->op].shape.size();
  });
  for (std::size_t i = 0; i < members.size(); ++i) {
    const char* part = i == 0 ? "weight" : "bias";
    members[i]->variable =
        members.size() <= 2 ? fmt::format("{}/{}", folder, part) : fmt::format("{}/parameter{}", folder, i);
  }
}

}  // namespace

void name_variables(std::vector<KinetoGradient>& gradients, const std::vector<KinetoOp>& ops, const RangeIndex& modules,
                    TraceHints& hints) {
  const auto module_of = [&](std::size_t forward) {
    const KinetoRange* call = modules.around(ops[forward].thread, ops[forward].begin);
    return call == nullptr ? std::string{} : std::string(call->name);
  };
  std::map<std::size_t, std::vector<KinetoGradient*>> by_forward;
  for (KinetoGradient& gradient : gradients) by_forward[gradient.forward].push_back(&gradient);
  std::map<std::string, int> readers;  // forward operators with variables by module
  for (const auto& [forward, members] : by_forward) ++readers[module_of(forward)];
  std::map<std::string, int> counts;
  for (auto& [forward, members] : by_forward) {
    const std::string op = short_name(ops[forward]);
    const std::string module = module_of(forward);
    std::string folder = module;
    if (module.empty() || readers[module] > 1) {
      const std::string stem = module.empty() ? op : fmt::format("{}.{}", module, op);
      folder = fmt::format("{}.{}", stem, counts[stem]++);
    }
    name_members(members, ops, folder);
    for (const KinetoGradient* gradient : members)
      hints.variables[gradient->variable] = {ops[gradient->op].shape, kind_of(op)};
  }
}

}  // namespace simsync::detail
