// Which parameters a set of probes can speak about.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "platforms/field_text.hpp"
#include "platforms/reader.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync {
namespace {

/// What a set of probes covers.
struct Coverage {
  std::set<int> ranks_inside;   ///< rank counts of collectives on one node
  std::set<int> nodes_between;  ///< node counts of collectives on several
  std::size_t probes = 0;
  std::size_t collectives = 0;
  bool push = false;
  bool pull = false;
  std::set<int> reads;  ///< rank counts
  bool message_inside = false;
  bool message_between = false;
  std::set<int> messages;  ///< between nodes, at a time
};

Coverage coverage_of(const Cluster& cluster, const std::vector<Probe>& probes) {
  Coverage out;
  out.probes = probes.size();
  for (const Probe& probe : probes) {
    const auto places = places_of(probe, cluster);
    const int nodes = places.back().node - places.front().node + 1;
    if (probe.kind == ProbeKind::Push) out.push = true;
    if (probe.kind == ProbeKind::Pull) out.pull = true;
    if (probe.kind == ProbeKind::Reads) out.reads.insert(probe.ranks);
    if (probe.kind == ProbeKind::Message) (nodes > 1 ? out.message_between : out.message_inside) = true;
    if (probe.kind == ProbeKind::Message && nodes > 1) out.messages.insert(probe.count);
    if (!probe.collective()) continue;
    ++out.collectives;
    if (nodes > 1) {
      out.nodes_between.insert(nodes);
    } else {
      out.ranks_inside.insert(probe.ranks);
    }
  }
  return out;
}

Unknown time(std::string key, double low, double high) {
  return {std::move(key), Dimension::Time, low, high, false};
}
Unknown share(std::string key) {
  return {std::move(key), Dimension::Number, 0.02, 1.0, false};
}
Unknown rate(std::string key, double low, double high) {
  return {std::move(key), Dimension::Rate, low, high, false};
}

const NodeGroup& device_group(const Cluster& cluster) {
  for (const NodeGroup& group : cluster.groups)
    if (group.gpus > 0) return group;
  throw PlanError(fmt::format("cluster '{}' has no devices to calibrate", cluster.name));
}

std::string link_inside(const NodeGroup& group) {
  const bool direct = !group.fabric.gpu_link.empty() && group.fabric.peer_to_peer;
  return direct ? group.fabric.gpu_link : group.fabric.pcie_link;
}

/// Whose processors the servers of probes have. Groups that differ in name or rate only, as the hosts of a testbed,
/// have the same ones.
std::string server_group(const Cluster& cluster, const NodeGroup& devices) {
  const auto host =
      std::find_if(cluster.groups.begin(), cluster.groups.end(), [](const auto& g) { return g.gpus == 0; });
  const NodeGroup& first = host == cluster.groups.end() ? devices : *host;
  const bool alike = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                                 [&](const NodeGroup& group) { return group.cpu == first.cpu; });
  return alike ? "*" : first.name;
}

/// Whether single messages, rather than collectives, cross the network.
bool sends_messages(const Coverage& covered) {
  return covered.push || covered.pull || covered.message_between || !covered.reads.empty();
}

/// Rates and latencies of the links that messages and collectives cross.
std::vector<Unknown> wires(const Cluster& cluster, const Coverage& covered) {
  const NodeGroup& group = device_group(cluster);
  const bool between = sends_messages(covered);
  std::vector<Unknown> out;
  if (between || !covered.nodes_between.empty()) {  // grown_for has made sure that there is a network
    out.push_back(share("link." + group.nic_link + ".efficiency"));
    if (cluster.links.at(group.nic_link).per_flow_cap)
      out.push_back(rate("link." + group.nic_link + ".per_flow_cap", 1e8, 1e11));
  }
  if (between) out.push_back(time("link." + group.nic_link + ".latency", 1e-7, 0.05));
  if (covered.message_inside) {
    out.push_back(share("link." + link_inside(group) + ".efficiency"));
    out.push_back(time("link." + link_inside(group) + ".latency", 1e-8, 0.01));
  }
  // A cost of every message on its link, besides the bytes, shows where several follow each other.
  if (covered.messages.size() > 1)
    out.push_back({"link." + group.nic_link + ".half_size", Dimension::Size, 1.0, 1e6, false});
  return out;
}

/// What servers cost, and what waits in the ports before them.
std::vector<Unknown> servers(const Cluster& cluster, const Coverage& covered) {
  const NodeGroup& group = device_group(cluster);
  std::vector<Unknown> out;
  const std::string server = server_group(cluster, group);
  const bool served = covered.push || covered.pull;
  if (served) out.push_back(time("group." + server + ".cpu.per_tensor", 1e-7, 0.05));
  // Without a message that no server handles it cannot be told from the link's latency.
  if ((served || !covered.reads.empty()) && covered.message_between)
    out.push_back(time("group." + server + ".cpu.dispatch_latency", 1e-7, 0.05));
  if (covered.push) out.push_back(rate("group." + server + ".cpu.sum_rate", 1e7, 1e12));
  if (covered.reads.empty()) return out;
  if (cluster.links.at(group.nic_link).service.turn.count > 0) return out;  // tells what waits in fair queues
  // Beside what one host sends, its own link is the one that holds it up; what several send waits at the server's.
  if (covered.reads.contains(2)) out.push_back(time("link." + group.nic_link + ".passing_delay", 1e-7, 1.0));
  if (*covered.reads.rbegin() > 2) out.push_back(time("link." + group.nic_link + ".queueing_delay", 1e-7, 1.0));
  return out;
}

/// What the cluster says that a message between nodes costs besides its bytes.
std::vector<Unknown> costs_of_message(const Cluster& cluster) {
  const std::string& name = device_group(cluster).nic_link;
  const LinkClass& link = cluster.links.at(name);
  std::vector<Unknown> out;
  if (link.half_size.count > 0) out.push_back({"link." + name + ".half_size", Dimension::Size, 1.0, 1e6, false});
  if (link.latency.value() > 0.0) out.push_back(time("link." + name + ".latency", 1e-7, 0.05));
  return out;
}

struct ProtocolShape {
  const char* name;
  bool overlap;
};

/// Costs of collectives, by protocol or for all alike. One rank count cannot tell a launch from the rounds: inside a
/// node, a round of the fastest protocol is as the cluster states it (NCCL's constants hold for every machine with such
/// links, a launch depends on the host); between nodes the launch is.
void add_collectives(CalibrationModel& model, const Cluster& cluster, const Coverage& covered,
                     const std::vector<ProtocolShape>& protocols) {
  const bool several = covered.ranks_inside.size() + covered.nodes_between.size() > 1;
  if (several || covered.nodes_between.empty()) model.unknowns.push_back(time("collective.launch", 1e-6, 0.02));
  bool state_round = !several && covered.nodes_between.empty();
  const auto add = [&](const std::string& prefix) {
    if (std::exchange(state_round, false)) {
      model.assumed.emplace_back(prefix + "per_step_intra", field_text(cluster.collective.per_step_intra));
    } else if (!covered.ranks_inside.empty()) {
      model.unknowns.push_back(time(prefix + "per_step_intra", 1e-7, 1e-3));
    }
    if (!covered.nodes_between.empty()) model.unknowns.push_back(time(prefix + "per_step_inter", 1e-7, 0.01));
    if (!covered.ranks_inside.empty()) model.unknowns.push_back(share(prefix + "efficiency"));
  };
  for (const auto& [name, overlap] : protocols) {
    const std::string prefix = fmt::format("collective.protocols.{}.", name);
    model.assumed.emplace_back(prefix + "overlap", overlap ? "true" : "false");
    add(prefix);
    // On several nodes only, the wire's share is found once and each further protocol's relative to it.
    if (covered.ranks_inside.empty() && overlap) model.unknowns.push_back(share(prefix + "efficiency"));
  }
  if (protocols.empty()) add("collective.");
}

/// Collectives over several nodes only: the links inside the nodes may set the pace instead of the NICs. Turns a
/// description into that one; false when there is no such choice.
bool bounded_inside(CalibrationModel& model, const Cluster& cluster, const Coverage& covered) {
  const NodeGroup& group = device_group(cluster);
  if (group.gpus < 2 || !covered.ranks_inside.empty() || covered.collectives < covered.probes) return false;
  const auto wire = std::find_if(model.unknowns.begin(), model.unknowns.end(), [&](const Unknown& unknown) {
    return unknown.key == "link." + group.nic_link + ".efficiency";
  });
  if (wire == model.unknowns.end()) return false;
  wire->key = "link." + link_inside(group) + ".efficiency";
  model.name += ", bounded inside nodes";
  return true;
}

}  // namespace

FoundApart apart_for(const Cluster& cluster, const std::vector<Probe>& probes) {
  const auto any = [&](const auto& of) { return std::any_of(probes.begin(), probes.end(), of); };
  FoundApart out;
  if (any([](const Probe& probe) { return probe.kind == ProbeKind::Overlap; }))
    out.interference = {std::string(kInterference), Dimension::Number, 0.0, 0.99, false};
  if (any([](const Probe& probe) { return probe.to_server(); }))
    out.threads = {"group." + server_group(cluster, device_group(cluster)) + ".cpu.threads", Dimension::Number, 1.0,
                   4096.0, false};
  return out;
}

std::vector<CalibrationModel> models_for(const Cluster& cluster, const std::vector<Probe>& probes) {
  const Cluster grown = grown_for(cluster, probes);
  const Coverage covered = coverage_of(grown, probes);
  CalibrationModel base{.name = "plain", .assumed = {}, .unknowns = wires(cluster, covered)};
  const auto of_servers = servers(cluster, covered);
  base.unknowns.insert(base.unknowns.end(), of_servers.begin(), of_servers.end());
  if (covered.collectives == 0) return {base};
  if (!sends_messages(covered) && !covered.nodes_between.empty()) base.stated = costs_of_message(cluster);
  // The link's own share stands aside: what a collective reaches of the nominal rate is the protocol's.
  if (!covered.ranks_inside.empty() && !covered.message_inside)
    base.assumed.emplace_back("link." + link_inside(device_group(cluster)) + ".efficiency", "1");
  const std::vector<std::pair<const char*, std::vector<ProtocolShape>>> shapes{
      {"one protocol", {}},
      {"ll128 and simple", {{"ll128", true}, {"simple", false}}},
      {"ll, ll128 and simple", {{"ll", true}, {"ll128", true}, {"simple", false}}}};
  // With one rank count the pass over the payload only shows as a lower rate.
  const bool several = covered.ranks_inside.size() + covered.nodes_between.size() > 1;
  std::vector<CalibrationModel> out;
  for (const auto& [name, protocols] : shapes) {
    // Protocols are NCCL's; where all collectives are of one algorithm they are another library's.
    if (!protocols.empty() && cluster.collective.algorithm != "auto") continue;
    for (const bool payload : {false, true}) {
      if (payload && !several) continue;
      CalibrationModel model = base;
      model.name = fmt::format("{}{}", name, payload ? ", with a pass over the payload" : "");
      add_collectives(model, cluster, covered, protocols);
      if (payload) model.unknowns.push_back(rate("collective.payload_rate", 1e8, 1e13));
      if (model.unknowns.size() >= probes.size() && !out.empty()) continue;
      out.push_back(model);
      if (bounded_inside(model, cluster, covered)) out.push_back(std::move(model));
    }
  }
  return out;
}

}  // namespace simsync
