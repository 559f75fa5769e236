// Variables on parameter servers in an estimated step. Private to sim/plan.
#pragma once
#include <vector>

#include "sim/plan/estimate_context.hpp"

namespace simsync::detail {

/// Resources of a node that serves: its network in both directions and its threads.
struct ServerNode {
  bool is_worker = false;
  Resource in;
  Resource out;
  Resource threads;        ///< that sum and apply
  Resource answers;        ///< the same threads, which answer reads before all else
  Resource connection_in;  ///< of one worker's node with it
  Resource connection_out;
  double own = 0.0;  ///< bytes that its own workers read without the network
  SharedWires shared_in;
  SharedWires shared_out;
};

/// What travels to one server as one push and one pull, or as `pieces` of each.
struct Served {
  VariableId variable = 0;
  const VariableStrategy* how = nullptr;
  PsSynchronizer ps;
  double bytes = 0.0;
  double messages = 1.0;  ///< of all pieces
  double pieces = 1.0;
  bool sparse = false;
  // Set once:
  double scatter = 0.0;     ///< s: a reduce-scatter of the gradient among the GPUs of a node, where it is summed there
  double gather = 0.0;      ///< s: an all-gather of the variable
  double turn_in = 0.0;     ///< s that a worker's queue is busy with it (EstimatedServers::turn_of), with credit
  double turn_out = 0.0;    ///< the same of its way back
  std::size_t urgency = 0;  ///< 0: goes before all others
  /// When its server has applied all gradients, and hosts have their copies where they keep some (is_refreshed): of the
  /// first piece and of the last.
  Moving updated;
};

/// One iteration after another of what servers and their workers do.
class EstimatedServers {
public:
  EstimatedServers(const EstimateContext& context, const Strategy& strategy);
  /// From now on take_shared_wires() is asked.
  void beside_collectives() { beside_collectives_ = true; }

  [[nodiscard]] const std::vector<Served>& served() const { return served_; }
  [[nodiscard]] bool empty() const { return served_.empty(); }
  /// Gradients of all variables, ready at these times by layer, until the servers have applied them.
  void push_all(const std::vector<double>& ready);
  /// From their servers to the devices, each from Served::updated or from `start`, if that is later. By layer the time
  /// at which its last variable has arrived, 0 for a layer without any.
  void pull_all(double start, std::vector<double>& arrived);
  /// By server and direction: when its link was shared with the other nodes, since this was asked last.
  std::vector<SharedWires> take_shared_wires();
  /// What each kind of resource has done so far.
  void count(StepLoads& loads) const;

private:
  /// Something that waits for its turn on a queue of the worker.
  struct Queued {
    Moving moving;
    std::size_t served = 0;
  };
  void cut();
  void set_once();
  [[nodiscard]] bool scheduled() const;
  [[nodiscard]] bool by_priority() const;
  [[nodiscard]] bool on_gpu(const Served& one) const;
  [[nodiscard]] int remote_nodes(const Served& one) const;
  [[nodiscard]] double host_pass(const CpuClass& cpu, double rate, double passes, double bytes, double& threads) const;
  void aggregate(Moving& moving, const Served& one);
  void call(Moving& moving, const Served& one, Resource& calls);
  void cross(Moving& moving, const Served& one, double node_bytes, bool to_server);
  void sum(Moving& moving, const Served& one);
  void apply(Moving& moving, const Served& one);
  /// Works of the threads of a server.
  struct Works {
    double length = 0.0;   ///< of one, for all pieces
    double threads = 1.0;  ///< that it takes
    double count = 1.0;
    bool in_turn = false;  ///< one after another
  };
  void work(Moving& moving, const Served& one, Resource& threads, const Works& works);
  void bring(Moving& moving, const Served& one);
  void fetch(Moving& moving, const Served& one);
  void to_devices(Moving& moving, const Served& one);
  void order(std::vector<Queued>& waiting, bool to_server) const;
  [[nodiscard]] double in_flight(const Served& one) const;
  [[nodiscard]] double turn_of(const Served& one, bool to_server) const;
  [[nodiscard]] bool is_refreshed(const Served& one) const;
  void note_shared_wire(const Resource& link, SharedWires& wires, double length, double flows) const;
  ServerNode& node_of(const Served& one) { return nodes_[static_cast<std::size_t>(one.ps.server.node)]; }

  const EstimateContext& c_;
  const Strategy& strategy_;
  const GraphStrategy& graph_;
  std::vector<Served> served_;        ///< in backward order
  std::vector<std::size_t> reading_;  ///< order of pulls
  std::vector<ServerNode> nodes_;     ///< by node of the cluster
  int servers_ = 0;                   ///< that serve anything
  bool beside_collectives_ = false;
  Resource to_host_;
  Resource to_device_;
  Resource inside_;
  Resource sums_;
  Resource calls_;    ///< for pushes
  Resource returns_;  ///< for pulls
  Resource sends_;
  Resource receives_;
};

}  // namespace simsync::detail
