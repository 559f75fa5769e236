// The life of one variable on its parameter servers, written as ops. Private to sim/plan.
#pragma once
#include <string>
#include <vector>

#include "sim/plan/server_ops.hpp"

namespace simsync::detail {

/// Writes what one variable needs in an iteration: pushes and updates first, then what brings it back. The writer must
/// outlive it.
class VariableOnServers {
public:
  VariableOnServers(PlanWriter& writer, VariableId id);

  /// Everything up to the servers' updates.
  void write_push();
  /// A copy per host is refreshed inside the step, as soon as its variable is updated; AutoDist's train op waits for
  /// the assignment to the proxy.
  void write_refresh();
  /// Reading back; `start` is the op that opens the next step, -1 when nothing has to be waited for.
  void write_pull(OpId start);

  /// What has to happen before a step that reads its variables from servers may return.
  [[nodiscard]] const std::vector<After>& returned() const { return refreshed_.empty() ? updates_ : refreshed_; }
  /// The servers are through with what each worker pushed.
  [[nodiscard]] const std::vector<After>& summed() const { return summed_; }

private:
  /// What travels to one server as one push and one pull.
  struct Piece {
    PsSynchronizer how;
    double bytes = 0.0;
    int messages = 1;
    std::size_t number = 0;
    std::int32_t tensor = -1;  ///< of the plan
  };

  [[nodiscard]] bool scheduled() const;
  [[nodiscard]] std::string label(std::size_t number) const { return w_.label(id_, number, pieces_.size()); }
  [[nodiscard]] std::int32_t layer() const { return static_cast<std::int32_t>(variable_.layer); }
  [[nodiscard]] double aggregated_bytes() const;  ///< that hosts sum for their devices
  [[nodiscard]] int ranks_per_node() const;
  [[nodiscard]] bool on_gpu() const;
  /// On one machine there is nothing to send: GPUs that sum and update by themselves need no server (BytePS).
  [[nodiscard]] bool stays_on_gpus() const;

  /// Shards of one variable that one server keeps in the same way travel back to back, unless a scheduler handles them
  /// one by one.
  void cut();
  /// A copy between each device and its host, on the engine of that direction.
  [[nodiscard]] Op copy(End from, End to, double bytes, const std::string& text) const;
  [[nodiscard]] ServerPiece at_server(const Piece& piece) const;

  /// The gradient is final and may leave its device.
  [[nodiscard]] OpId gradient_ready() const;
  /// Whether some worker's host is another one than the server's.
  [[nodiscard]] bool crosses_network(const Piece& piece) const;
  /// Whether the remote calls for it take hosts time.
  [[nodiscard]] bool calls_cost(const Piece& piece) const;
  /// The time that a worker's host takes for the message of a piece to or from its server. A server on the host itself
  /// is called in the same way: a plan has one program for all hosts.
  OpId remote_call(GroupingId grouping, const Piece& piece, double bytes, std::vector<After> after);

  /// A collective among the GPUs of each host.
  OpId inside_host(CollectivePrimitive primitive, double bytes, OpId after, const std::string& text);
  /// One GPU alone has the sum already.
  OpId reduce_on_gpus(const Piece& piece);
  /// Gradients of one host summed there. A sparse gradient is gathered, so that its bytes add up instead.
  OpId aggregate(double bytes, const std::string& text);
  OpId copy_to_device(double bytes, const std::vector<OpId>& after, const std::string& text);

  /// The server has the gradient, and has added it to the others' where these are waited for.
  After push(const Piece& piece, OpId whole);
  /// Without synchronization every gradient is applied on its own as it comes. Bounded staleness: who waits for the
  /// update waits for the one that many steps before.
  After update(const Piece& piece, After summed);
  OpId pull(const Piece& piece, After fresh);
  void finish(OpId arrived);

  PlanWriter& w_;
  ServerOps servers_;
  VariableId id_;
  const Variable& variable_;
  const VariableStrategy& how_;
  std::vector<Piece> pieces_;
  std::vector<After> summed_;     ///< by piece
  std::vector<After> updates_;    ///< by piece
  std::vector<After> refreshed_;  ///< by piece, of copies that are refreshed before the step returns
};

}  // namespace simsync::detail
