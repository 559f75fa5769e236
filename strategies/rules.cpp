#include "strategies/rules.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "strategies/names.hpp"
#include "strategies/partition.hpp"
#include "strategies/placement.hpp"

namespace simsync {
namespace {

Words<LayerKind> layer_kind_words() {
  Words<LayerKind> words;
  for (const LayerKind kind :
       {LayerKind::Conv, LayerKind::Dense, LayerKind::Embedding, LayerKind::Norm, LayerKind::Activation,
        LayerKind::Pool, LayerKind::Attention, LayerKind::Recurrent, LayerKind::Elementwise, LayerKind::Loss})
    words.emplace_back(name_of(kind), kind);
  return words;
}

Match read_match(const yaml::Node& node) {
  Match match;
  auto m = node.mapping();
  m.maybe("any", [&](const yaml::Node& n) {
    match.any = n.boolean();
    if (!match.any) n.fail("expected true: a rule with `any` matches every variable");
  });
  m.maybe("name", [&](const yaml::Node& n) { match.name = n.text(); });
  m.maybe("sparse", [&](const yaml::Node& n) { match.sparse = n.boolean(); });
  m.maybe("kind", [&](const yaml::Node& n) { match.kind = n.one_of(layer_kind_words()); });
  m.maybe("axes", [&](const yaml::Node& n) { match.axes = n.integer(0, kMostShards); });
  m.maybe("bytes_at_least", [&](const yaml::Node& n) { match.bytes_at_least = n.bytes(); });
  m.maybe("bytes_at_most", [&](const yaml::Node& n) { match.bytes_at_most = n.bytes(); });
  const bool condition =
      match.name || match.sparse || match.kind || match.axes || match.bytes_at_least || match.bytes_at_most;
  if (match.any && condition) node.fail("`any: true` stands alone; drop it or the other conditions");
  if (!match.any && !condition && node.is_mapping())
    node.fail("a rule without a condition", "write {any: true} to match everything");
  if (match.bytes_at_least && match.bytes_at_most && *match.bytes_at_least > *match.bytes_at_most)
    node.fail("bytes_at_least is above bytes_at_most, so nothing can match");
  return match;
}

/// A word (auto, workers, cpu-only, all) or a list of places.
std::vector<Place> read_servers(const yaml::Node& node, const BuildRequest& request) {
  std::vector<Place> places;
  if (!node || node.is_scalar()) {
    const Hosts hosts = hosts_of(request.cluster, request.workers);
    const std::size_t choice = node ? node.choice({"auto", "workers", "cpu-only", "all"}) : 0;
    if (choice == 3) return hosts.all();
    if (choice == 1 || (choice == 0 && hosts.cpu_only.empty())) return hosts.workers;
    if (hosts.cpu_only.empty()) node.fail(fmt::format("cluster '{}' has no node without GPUs", request.cluster.name));
    return hosts.cpu_only;
  }
  for (const auto& item : node.items()) {
    const auto place = read_place(item, request.cluster);
    if (!place) continue;
    for (const Place& earlier : places) {
      if (earlier == *place) item.fail(fmt::format("'{}' is in the list twice", name_of(*place)));
    }
    places.push_back(*place);
  }
  if (node.items().empty()) node.fail("expected at least one server");
  return places;
}

void read_partition(yaml::Mapping& m, Rule& rule) {
  m.maybe("axis",
          [&](const yaml::Node& n) { rule.axis = static_cast<int>(n.integer(0, std::numeric_limits<int>::max())); });
  m.maybe("shards", [&](const yaml::Node& n) { rule.shards = n.integer(1, kMostShards); });
  m.maybe("piece", [&](const yaml::Node& n) {
    rule.piece = n.bytes({static_cast<double>(size_of(DType::Float32)), std::numeric_limits<double>::infinity()});
    if (rule.shards > 1) n.fail("`piece` and `shards` exclude each other");
  });
  m.maybe("priority", [&](const yaml::Node& n) {
    rule.priority_by_layer = n.is_scalar() && n.text() == "layer";
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    if (!rule.priority_by_layer) rule.entry.priority = static_cast<int>(n.integer(-kMost, kMost));
  });
}

void read_fusion_of_rule(yaml::Mapping& m, Rule& rule) {
  m.maybe("bucket", [&](const yaml::Node& n) {
    rule.bucket = n.bytes({1.0, std::numeric_limits<double>::infinity()});
  });
  m.maybe("chunk", [&](const yaml::Node& n) {
    rule.chunk = n.integer(1, kMostShards);
    if (rule.bucket) n.fail("`chunk` and `bucket` exclude each other");
  });
}

Rule read_rule(const yaml::Node& node, const BuildRequest& request) {
  Rule rule;
  auto m = node.mapping();
  rule.match = read_match(m.require("match"));
  rule.synchronizer = read_synchronizer(m);
  if (std::holds_alternative<PsSynchronizer>(rule.synchronizer)) {
    rule.servers = read_servers(m.optional("servers"), request);
    m.maybe("placement", [&](const yaml::Node& n) {
      rule.placement = n.one_of<PlacementKind>({{"load-balanced", PlacementKind::LoadBalanced},
                                                {"round-robin", PlacementKind::RoundRobin},
                                                {"first", PlacementKind::First},
                                                {"deal", PlacementKind::Deal},
                                                {"bandwidth", PlacementKind::Bandwidth}});
    });
  }
  if (std::holds_alternative<AllReduceSynchronizer>(rule.synchronizer)) read_fusion_of_rule(m, rule);
  read_partition(m, rule);
  read_encoding(m, rule.entry);
  return rule;
}

}  // namespace

bool Match::covers(const Model& model, const Variable& variable) const {
  if (any) return true;
  return (!name || matches_glob(*name, variable.name)) && (!sparse || *sparse == variable.sparse) &&
         (!kind || *kind == model.layer(variable.layer).kind) &&
         (!axes || *axes == static_cast<std::int64_t>(variable.shape.size())) &&
         (!bytes_at_least || variable.bytes() >= *bytes_at_least) &&
         (!bytes_at_most || variable.bytes() <= *bytes_at_most);
}

bool matches_glob(const std::string& pattern, const std::string& text) {
  // Greedy with one point of return: on a mismatch the last star takes one character more. O(pattern x text).
  std::size_t p = 0;
  std::size_t star = std::string::npos;
  std::size_t taken = 0;
  for (std::size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<Rule> read_rules(const yaml::Node& node, const BuildRequest& request) {
  std::vector<Rule> rules;
  const auto items = node.items();
  for (const auto& item : items) {
    const std::size_t unreached = rules.size();
    rules.push_back(read_rule(item, request));
    if (unreached > 0 && rules[unreached - 1].match.any)
      item.fail("this rule is never reached: the one before matches everything");
  }
  if (node.is_sequence() && (rules.empty() || !rules.back().match.any)) {
    const yaml::Node& place = items.empty() ? node : items.back();
    place.fail("the last rule must match everything", "end the list with a rule that has match: {any: true}");
  }
  return rules;
}

}  // namespace simsync
