#include "strategies/sbp/boxing_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Of a path: its cost, then its number of steps.
struct Length {
  double cost = 0.0;
  int steps = 0;
  friend auto operator<=>(const Length&, const Length&) = default;
};

struct Edge {
  BoxingStep step;
  Length length;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

constexpr Length kUnreached{std::numeric_limits<double>::infinity(), std::numeric_limits<int>::max()};

struct Sum {
  Length operator()(const Length& a, const Length& b) const { return {a.cost + b.cost, a.steps + b.steps}; }
};

/// Shortest paths from one tuple to all others.
struct Tree {
  std::vector<Length> lengths;
  std::vector<Vertex> before;  ///< the last tuple but one of the path to each
};

/// The next tuple in the order in which the last entry varies fastest; false after the last one.
bool advance(SbpTuple& tuple, const std::vector<Sbp>& entries) {
  for (std::size_t a = tuple.size(); a-- > 0;) {
    const auto next = std::find(entries.begin(), entries.end(), tuple[a]) + 1;
    if (next != entries.end()) {
      tuple[a] = *next;
      return true;
    }
    tuple[a] = entries.front();
  }
  return false;
}

}  // namespace

class BoxingPaths::Search {
public:
  Search(const DeviceMesh& mesh, std::vector<AxisLink> links, BoxingTensor tensor, BoxingOptions options)
      : mesh_(mesh), links_(std::move(links)), tensor_(std::move(tensor)), options_(options) {
    if (static_cast<int>(links_.size()) != mesh_.axis_count())
      throw PlanError(fmt::format("{} links for {} mesh axes: expected one each", links_.size(), mesh_.axis_count()));
    for (int a = 0; a < mesh_.axis_count(); ++a)
      if (mesh_.size(a) > 1) axes_.push_back(a);
    list_tuples();
    graph_ = Graph(tuples_.size());
    for (Vertex v = 0; v < tuples_.size(); ++v) add_steps(v);
  }

  BoxingPath path(const SbpTuple& from, const SbpTuple& to) {
    const Vertex source = vertex(from);
    const Vertex target = vertex(to);
    BoxingPath out;
    if (const Edge* edge = direct(source, target)) {
      out.steps.push_back(edge->step);
    } else {
      const Tree& tree = tree_from(source, target);
      for (Vertex v = target; v != source; v = tree.before[v]) out.steps.push_back(edge_of(tree.before[v], v)->step);
      std::reverse(out.steps.begin(), out.steps.end());
    }
    for (const BoxingStep& step : out.steps) {
      out.bytes_per_rank += step.bytes_per_rank;
      out.oneflow_bytes += step.oneflow_bytes;
      out.time += step.time;
    }
    return out;
  }

  double cost(const SbpTuple& from, const SbpTuple& to) {
    const Vertex source = vertex(from);
    const Vertex target = vertex(to);
    if (const Edge* edge = direct(source, target)) return edge->length.cost;
    return tree_from(source, target).lengths[target].cost;
  }

private:
  /// Tuples are told apart along mesh axes of several ranks only (`axes_`); the other entries are B.
  void list_tuples() {
    std::vector<Sbp> entries{Sbp::broadcast(), Sbp::partial()};
    for (std::size_t axis = 0; axis < tensor_.shape.size(); ++axis)
      entries.push_back(Sbp::split(static_cast<int>(axis)));
    std::size_t count = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      count *= entries.size();
      if (count > kMostBoxingTuples)
        throw PlanError(fmt::format("a tensor of {} axes on {} mesh axes has too many layouts: expected at most {}",
                                    tensor_.shape.size(), axes_.size(), kMostBoxingTuples));
    }
    entries_ = entries;
    SbpTuple some(axes_.size(), entries.front());
    do {
      SbpTuple tuple(static_cast<std::size_t>(mesh_.axis_count()));
      for (std::size_t i = 0; i < axes_.size(); ++i) tuple[static_cast<std::size_t>(axes_[i])] = some[i];
      if (misfit(tensor_.shape, tuple, mesh_)) continue;
      vertices_.emplace(tuple, tuples_.size());
      tuples_.push_back(std::move(tuple));
    } while (advance(some, entries));
  }

  Vertex vertex(SbpTuple tuple) const {
    expect_fit(tensor_.shape, tuple, mesh_);
    for (int a = 0; a < mesh_.axis_count(); ++a)
      if (mesh_.size(a) == 1) tuple[static_cast<std::size_t>(a)] = Sbp::broadcast();
    return vertices_.at(tuple);
  }

  /// Every run of neighboring axes with equal entries, into every other entry.
  void add_steps(Vertex from) {
    const SbpTuple& tuple = tuples_[from];
    for (std::size_t first = 0; first < axes_.size(); ++first) {
      const Sbp entry = tuple[static_cast<std::size_t>(axes_[first])];
      for (std::size_t last = first; last < axes_.size(); ++last) {
        if (tuple[static_cast<std::size_t>(axes_[last])] != entry) break;
        for (const Sbp to : entries_)
          if (to != entry) add_step(from, {first, last}, to);
      }
    }
  }

  /// Positions in `axes_`.
  struct Run {
    std::size_t first;
    std::size_t last;
  };

  void add_step(Vertex from, Run run, Sbp to) {
    SbpTuple tuple = tuples_[from];
    const Sbp entry = tuple[static_cast<std::size_t>(axes_[run.first])];
    for (std::size_t i = run.first; i <= run.last; ++i) tuple[static_cast<std::size_t>(axes_[i])] = to;
    const auto found = vertices_.find(tuple);
    if (found == vertices_.end() || !keeps_pieces_whole(tuple, run, entry) || !keeps_pieces_whole(tuple, run, to))
      return;
    if (const auto step = step_of(tuple, run, entry)) {
      const Length length{cost_of(*step), 1};
      boost::add_edge(from, found->second, Edge{*step, length}, graph_);
    }
  }

  /// Whether a run can gather or cut along the axis that `entry` splits, if it does.
  bool keeps_pieces_whole(const SbpTuple& tuple, Run run, Sbp entry) const {
    if (!entry.is_split()) return true;
    std::int64_t before = 1;
    std::int64_t together = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes_[i]);
      if (i >= run.first && i <= run.last) {
        together *= mesh_.size(axes_[i]);
      } else if (tuple[axis] == entry) {
        if (i > run.last) return false;
        before *= mesh_.size(axes_[i]);
      }
    }
    if (run.first == run.last) return true;
    const std::int64_t length = tensor_.shape[static_cast<std::size_t>(entry.axis)];
    if (before > 1) return length % (before * together) == 0;
    const std::int64_t rest = length % together;
    return rest <= 1 || rest == together - 1;
  }

  /// `tuple` is that behind the step.
  std::optional<BoxingStep> step_of(const SbpTuple& tuple, Run run, Sbp from) const {
    const double bytes = element_count(tensor_.shape) * tensor_.element_bytes;
    BoxingStep out{.first_axis = axes_[run.first], .last_axis = axes_[run.last], .from = from};
    out.to = tuple[static_cast<std::size_t>(out.first_axis)];
    int ranks = 1;
    double split = 1.0;   // pieces that other axes cut the tensor into
    double copied = 1.0;  // groups that have the same piece, or addends of it
    AxisLink link = links_[static_cast<std::size_t>(out.first_axis)];
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes_[i]);
      const int size = mesh_.size(axes_[i]);
      if (i < run.first || i > run.last) {
        (tuple[axis].is_split() ? split : copied) *= size;
        continue;
      }
      ranks *= size;
      link = {std::max(link.startup, links_[axis].startup), std::min(link.bandwidth, links_[axis].bandwidth)};
    }
    const auto op = boxing_op(out.from, out.to, ranks, options_.rules);
    if (!op) return std::nullopt;
    out.op = *op;
    out.bytes_per_rank = bytes_sent(out.op, bytes / split, ranks);
    out.time = ring_time(out.op, bytes / split, ranks, link);
    out.oneflow_bytes = *simsync::oneflow_bytes(out.from, out.to, bytes * copied, ranks, options_.rules);
    return out;
  }

  double cost_of(const BoxingStep& step) const {
    switch (options_.measure) {
      case BoxingMeasure::Time:
        return step.time.value();
      case BoxingMeasure::BytesPerRank:
        return step.bytes_per_rank;
      case BoxingMeasure::OneFlow:
        return step.oneflow_bytes + options_.oneflow_startup;
    }
    assertion_failed("every measure has a cost", __FILE__, __LINE__);
  }

  const Edge* edge_of(Vertex from, Vertex to) const {
    const auto [edge, found] = boost::edge(from, to, graph_);
    return found ? &graph_[edge] : nullptr;
  }

  /// The step that OneFlow takes without looking further.
  const Edge* direct(Vertex from, Vertex to) const {
    const Edge* edge = options_.direct ? edge_of(from, to) : nullptr;
    return edge != nullptr && edge->step.first_axis == edge->step.last_axis ? edge : nullptr;
  }

  const Tree& tree_from(Vertex source, Vertex target) {
    const auto [found, is_new] = trees_.try_emplace(source);
    Tree& tree = found->second;
    if (is_new) {
      tree.lengths.resize(tuples_.size());
      tree.before.resize(tuples_.size());
      boost::dijkstra_shortest_paths(graph_, source,
                                     boost::weight_map(boost::get(&Edge::length, graph_))
                                         .distance_map(tree.lengths.data())
                                         .predecessor_map(tree.before.data())
                                         .distance_compare(std::less<Length>{})
                                         .distance_combine(Sum{})
                                         .distance_inf(kUnreached)
                                         .distance_zero(Length{}));
    }
    if (tree.lengths[target] == kUnreached)
      throw PlanError(
          fmt::format("no collectives lead from layout {} to {}: none makes a partial sum under this policy",
                      text_of(tuples_[source]), text_of(tuples_[target])));
    return tree;
  }

  DeviceMesh mesh_;
  std::vector<AxisLink> links_;
  BoxingTensor tensor_;
  BoxingOptions options_;
  std::vector<int> axes_;  ///< mesh axes of several ranks
  std::vector<Sbp> entries_;
  std::vector<SbpTuple> tuples_;  ///< by vertex
  std::map<SbpTuple, Vertex> vertices_;
  Graph graph_;
  std::map<Vertex, Tree> trees_;  ///< by source, those asked for
};

BoxingPaths::BoxingPaths(const DeviceMesh& mesh, std::vector<AxisLink> links, BoxingTensor tensor,
                         BoxingOptions options)
    : search_(std::make_unique<Search>(mesh, std::move(links), std::move(tensor), options)) {}
BoxingPaths::~BoxingPaths() = default;
BoxingPaths::BoxingPaths(BoxingPaths&&) noexcept = default;
BoxingPaths& BoxingPaths::operator=(BoxingPaths&&) noexcept = default;

BoxingPath BoxingPaths::path(const SbpTuple& from, const SbpTuple& to) {
  return search_->path(from, to);
}

double BoxingPaths::cost(const SbpTuple& from, const SbpTuple& to) {
  return search_->cost(from, to);
}

std::vector<AxisLink> links_of(const DeviceMesh& mesh, const NodeLinks& nodes) {
  if (nodes.ranks_per_node < 1 || (mesh.ranks() > nodes.ranks_per_node && mesh.ranks() % nodes.ranks_per_node != 0))
    throw PlanError(
        fmt::format("a mesh of {} ranks on nodes of {}: expected full nodes", mesh.ranks(), nodes.ranks_per_node));
  std::vector<AxisLink> out;
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    const std::vector<int> groups = mesh.group_of({axis});
    std::map<int, std::set<int>> nodes_of;  // group -> nodes
    for (int rank = 0; rank < mesh.ranks(); ++rank)
      nodes_of[groups[static_cast<std::size_t>(rank)]].insert(rank / nodes.ranks_per_node);
    std::map<int, int> leaving;  // node -> groups that leave it
    for (const auto& [group, its_nodes] : nodes_of)
      for (const int node : its_nodes)
        if (its_nodes.size() > 1) ++leaving[node];
    int rings = 0;
    for (const auto& [node, count] : leaving) rings = std::max(rings, count);
    out.push_back(rings == 0 ? nodes.within
                             : AxisLink{nodes.between.startup, nodes.between.bandwidth / static_cast<double>(rings)});
  }
  return out;
}

}  // namespace simsync
