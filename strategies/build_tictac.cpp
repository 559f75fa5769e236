// tictac: TensorFlow's parameter servers with an enforced order of the pulls.
#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <limits>

#include "strategies/families.hpp"

namespace simsync {
namespace {

enum class PullOrder { Tic, Fixed, Random, Tac };

/// Every worker is a process of its own (between-graph replication), so nothing is shared on a host.
void build_tictac(const BuildRequest& request, const Options& options, Strategy& strategy) {
  GraphStrategy& graph = strategy.graph;
  const PullOrder order = options.one_of<PullOrder>(
      "order",
      {{"tic", PullOrder::Tic}, {"fixed", PullOrder::Fixed}, {"random", PullOrder::Random}, {"tac", PullOrder::Tac}});
  if (order == PullOrder::Tac)
    options.fail("order", "'tac' orders by measured times, and a strategy holds no times",
                 "use order=tic, or a strategy file with a `priority` for each variable");
  graph.pull_at_step_start = true;
  graph.random_pull_order = order == PullOrder::Random;
  if (order == PullOrder::Tic) {
    graph.scheduling.ordering = Ordering::Priority;
    graph.scheduling.credit = options.bytes("credit", 0);
    graph.scheduling.pulls_only = true;
  }
  const PsSynchronizer how = waiting_synchronizer(options);
  const auto ranks = tic_ranks(request.model);
  Placement placement(chosen_servers(request, options));
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    PsSynchronizer ps = how;
    ps.server = placement.next_in_turn();
    ps.local_aggregation = false;
    strategy.variables.push_back(whole_variable(request.model, id, ps));
    if (order == PullOrder::Tic) strategy.variables.back().priority = ranks[id];
  }
}

}  // namespace

std::vector<int> tic_ranks(const Model& model) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  const std::size_t count = model.variables().size();
  std::vector<boost::dynamic_bitset<>> needs(model.layer_count(), boost::dynamic_bitset<>(count));
  std::vector<std::size_t> m_plus(count, kNever);
  // Edges lead from earlier to later layers, so the order of ids is a topological one.
  for (LayerId layer = 0; layer < model.layer_count(); ++layer) {
    auto& own = needs[layer];
    for (const VariableId id : model.layer(layer).variables) own.set(id);
    const auto [first, last] = boost::in_edges(layer, model.graph());
    for (auto edge = first; edge != last; ++edge) own |= needs[boost::source(*edge, model.graph())];
    const std::size_t size = own.count();
    if (size < 2) continue;
    for (std::size_t id = own.find_first(); id != boost::dynamic_bitset<>::npos; id = own.find_next(id))
      m_plus[id] = std::min(m_plus[id], size);
  }
  std::vector<std::size_t> distinct = m_plus;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int> ranks(count);
  for (std::size_t id = 0; id < count; ++id)
    ranks[id] = static_cast<int>(std::lower_bound(distinct.begin(), distinct.end(), m_plus[id]) - distinct.begin());
  return ranks;
}

std::vector<BuilderInfo> tictac_builders() {
  return {
      {"tictac",
       "Variables on servers in turn, pulled in the order in which layers need them (TicTac's TIC on TensorFlow).",
       joined({{"order", "tic",
                "tic; random: all pulls at once in an order drawn for every step, as TensorFlow does; fixed: all at "
                "once in one shuffled order"},
               {"credit", "1B", "bytes of pulls in flight per worker; 1B: one at a time; 0B: no limit"},
               servers_option()},
              joined(waiting_options(), connection_options("false"))),
       build_tictac}};
}

}  // namespace simsync
