#include "sim/problem/network_basis.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace simsync {
namespace {

bool crosses_nodes(const Plan& plan) {
  if (plan.nodes.size() > 1) return true;
  const auto elsewhere = [&](const End& end) { return end.is_fixed() && end.place.node != plan.nodes.front(); };
  return std::any_of(plan.ops.begin(), plan.ops.end(), [&](const Op& op) {
    if (const auto* work = std::get_if<HostWork>(&op.body)) return elsewhere(work->at);
    const auto* moved = std::get_if<Transfer>(&op.body);
    return moved != nullptr && (elsewhere(moved->from) || elsewhere(moved->to));
  });
}

std::set<std::string> crossed_links(const Plan& plan, const Cluster& cluster) {
  const bool network = crosses_nodes(plan);
  std::set<std::string> out;
  for (const int node : plan.nodes) {
    const NodeGroup& group = cluster.group_of(node);
    const NodeFabric& fabric = group.fabric;
    if (network) {
      out.insert(group.nic_link);
    } else {
      out.insert({fabric.gpu_link, fabric.pcie_link, fabric.switch_link, fabric.socket_link, fabric.memory_link});
    }
  }
  out.erase("");
  return out;
}

bool same_rates(const Cluster& a, const Cluster& b, const std::set<std::string>& links) {
  const auto rates = [](const LinkClass& link) { return std::tie(link.bandwidth, link.efficiency, link.per_flow_cap); };
  return a.network == b.network && std::all_of(links.begin(), links.end(), [&](const std::string& name) {
           return rates(a.links.at(name)) == rates(b.links.at(name));
         });
}

bool has_rate(const Calibration& calibration, const Plan& plan, const std::set<std::string>& links) {
  const bool collectives =
      std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.kind() == OpKind::Collective; });
  const auto counts = [&](const CalibratedParameter& parameter) {
    const std::string& key = parameter.key;
    // What compute loses, or a start-up cost, tells no rate.
    if (key == "collective.interference" || key == "collective.launch") return false;
    if (key.starts_with("collective.")) return collectives;
    if (key.starts_with("network.")) return true;
    return std::any_of(links.begin(), links.end(), [&](const std::string& link) {
      const std::string of_link = "link." + link + ".";
      return key == of_link + "bandwidth" || key == of_link + "efficiency" || key == of_link + "per_flow_cap";
    });
  };
  return std::any_of(calibration.parameters.begin(), calibration.parameters.end(), counts);
}

}  // namespace

NetworkBasis network_basis(const Plan& plan, const Cluster& described, const Cluster& used,
                           const Calibration* calibration) {
  const std::set<std::string> links = crossed_links(plan, used);
  if (!same_rates(described, used, links)) return NetworkBasis::Set;
  return calibration != nullptr && has_rate(*calibration, plan, links) ? NetworkBasis::Calibrated : NetworkBasis::File;
}

}  // namespace simsync
