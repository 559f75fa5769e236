// Ops of what travels between workers and one parameter server, and of that server's work. Private to sim/plan.
#pragma once
#include <string>
#include <vector>

#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {

inline constexpr double kSumPasses = 3.0;     ///< through a host's memory: two operands read, one written
inline constexpr double kUpdatePasses = 5.0;  ///< gradient, momentum and weight read; momentum and weight written

/// What travels to one server as one push, and back as one pull.
struct ServerPiece {
  Place server;
  double bytes = 0.0;
  int messages = 1;
  std::int32_t tensor = -1;  ///< of the plan
  int priority = 0;
  std::int32_t layer = -1;  ///< for people, as is `label`
  std::string label;
};

/// Writes them as the writer's strategy says how servers are connected and where variables are updated. The writer must
/// outlive it.
class ServerOps {
public:
  explicit ServerOps(PlanWriter& writer) : w_(writer) {}

  /// The transfer to the server and the one back, which are not part of the plan yet.
  [[nodiscard]] Op push(const ServerPiece& piece, GroupingId grouping, End from, double bytes) const;
  [[nodiscard]] Op pull(const ServerPiece& piece, GroupingId grouping, End to) const;

  /// `arrived`, once a thread of the server can begin with it.
  After dispatched(const ServerPiece& piece, GroupingId grouping, After arrived);
  /// Adds a gradient of so many bytes to the others'.
  After sum(const ServerPiece& piece, GroupingId grouping, double bytes, After received);
  /// Other work for the piece: `body` without its place and its tensor.
  After work(const ServerPiece& piece, GroupingId grouping, const HostWork& body, std::vector<After> after);

  /// What it takes to go through `bytes` on the server: a host by PlanWriter::host_pass, a GPU by its memory.
  [[nodiscard]] PlanWriter::HostPass through(const ServerPiece& piece, BytesPerSecond per_thread, double passes,
                                             double bytes) const;
  [[nodiscard]] Seconds per_tensor(const ServerPiece& piece) const;
  [[nodiscard]] const CpuClass& cpu(const Place& place) const { return w_.cluster.group_of(place.node).cpu; }

private:
  QueueId queue_of(const Place& server);
  Op host_work(const ServerPiece& piece, GroupingId grouping, HostWork body);
  /// What transfers of a piece have in common, whichever way they go.
  [[nodiscard]] Op transfer(const ServerPiece& piece, Phase phase, GroupingId grouping, Transfer body) const;

  PlanWriter& w_;
};

}  // namespace simsync::detail
