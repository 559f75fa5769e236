#include "sim/plan/collective_alone.hpp"

#include <utility>

#include "sim/plan/alike_nodes.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/routed_collective.hpp"
#include "sim/plan/time_alone.hpp"

namespace simsync {

struct CollectiveAlone::Network {
  Network(const Cluster& cluster, const Plan& plan, std::vector<int> nodes, bool represents)
      : chosen(std::move(nodes)), folded(represents), topology(cluster, numbers(plan), gpus_in_use(plan.ranks)) {}

  std::vector<int> chosen;  ///< groups of kEachNode
  bool folded;
  Topology topology;
  PipelineFills fills;
  std::map<detail::ScheduleKey, detail::RoutedSchedule> schedules;

private:
  [[nodiscard]] std::vector<int> numbers(const Plan& plan) const {
    std::vector<int> out;
    for (const int node : chosen) out.push_back(plan.nodes[static_cast<std::size_t>(node)]);
    return out;
  }
};

CollectiveAlone::CollectiveAlone(Cluster cluster, const std::vector<Place>& ranks) : cluster_(std::move(cluster)) {
  plan_.set_ranks(ranks);
}

CollectiveAlone::~CollectiveAlone() = default;

CollectiveAlone::Network& CollectiveAlone::network_for(const CollectiveKind& kind) {
  const bool fold = plan_.nodes.size() > 2 && detail::nodes_differ(plan_, cluster_).empty() &&
                    detail::ranks_differ(kind, plan_.grouping(kWholeJob).ranks(0), plan_, cluster_).empty();
  std::unique_ptr<Network>& network = fold ? folded_ : whole_;
  if (network) return *network;
  std::vector<int> nodes;
  for (std::size_t i = 0; i < (fold ? 1 : plan_.nodes.size()); ++i) nodes.push_back(static_cast<int>(i));
  network = std::make_unique<Network>(cluster_, plan_, std::move(nodes), fold);
  return *network;
}

double CollectiveAlone::run(const Question& question) {
  Network& network = network_for(question.kind);
  const detail::ScheduleKey key{.kind = question.kind,
                                .protocol = question.protocol,
                                .chunks = pipeline_chunks(question.kind, group_shape(plan_), question.bytes)};
  auto known = network.schedules.find(key);
  if (known == network.schedules.end()) {
    const detail::RouteContext context{plan_,          cluster_,       network.topology,
                                       network.chosen, network.folded, [](const auto&, auto) { return 0; },
                                       network.fills};
    known = network.schedules.emplace(key, detail::route(context, key)).first;
  }
  return detail::time_alone(network.topology, known->second, {question.bytes, question.ratio, question.whole_bytes});
}

double CollectiveAlone::known(const Question& question) {
  const auto [known, fresh] = known_.try_emplace(question, 0.0);
  if (fresh) known->second = run(question);
  return known->second;
}

Seconds CollectiveAlone::on_links(const CollectiveKind& kind, const std::string& protocol, double bytes, double ratio) {
  if (plan_.rank_count() < 2) return Seconds{0.0};
  return Seconds{known({.kind = kind, .protocol = protocol, .bytes = bytes, .ratio = ratio, .whole_bytes = true})};
}

Seconds CollectiveAlone::time(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const std::string& protocol,
                              double bytes) {
  if (plan_.rank_count() < 2) return Seconds{0.0};
  const CollectiveCosts& costs = cluster_.collective;
  const double ratio = is_own(costs, algorithm) ? ratio_of(costs, primitive, group_shape(plan_), bytes) : 1.0;
  return Seconds{ratio * known({.kind = {primitive, algorithm}, .protocol = protocol, .bytes = bytes})} +
         (ratio - 1.0) * collective_setup(costs, bytes);
}

}  // namespace simsync
