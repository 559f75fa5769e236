// One kind of work of a Plan, and what it waits for.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/plan/bodies.hpp"
#include "sim/plan/groupings.hpp"

namespace simsync {

using OpId = std::int32_t;
using QueueId = std::int32_t;

/// `op` must be complete before this one starts; `lag` 1 means the op of the iteration before, 2 of the one before
/// that.
struct After {
  OpId op = 0;
  int lag = 0;
  /// So many of its instances need not be (ProgressPolicy::backups). One that begins when the others are complete does
  /// not count: it takes HostWork::late.
  int may_miss = 0;
};

/// Why an op exists, for the timeline and the explanation; never read by a back end.
struct Reason {
  Phase phase = Phase::Start;
  std::int32_t layer = -1;  ///< first layer concerned, -1: none
  std::string label;        ///< `fc6/weight`, `bucket 3`, `conv1 ... conv4`
};

/// In the order of Op::body.
enum class OpKind : std::uint8_t { Compute, HostWork, Transfer, Collective };

struct Op {
  GroupingId grouping = kEachRank;
  QueueId queue = -1;  ///< serial resource it occupies while it runs; -1: none
  int priority = 0;    ///< smaller first; only a Priority queue looks at it
  std::vector<After> after;
  /// What waits for it, of its own iteration, becomes ready in an order that every instance draws (see draw_order).
  bool random_order = false;
  bool timed = false;  ///< a probe is about how long it takes
  std::variant<Compute, HostWork, Transfer, Collective> body;
  Reason reason;

  [[nodiscard]] OpKind kind() const { return static_cast<OpKind>(body.index()); }
  [[nodiscard]] Compute& compute() { return std::get<Compute>(body); }
  [[nodiscard]] const Compute& compute() const { return std::get<Compute>(body); }
  [[nodiscard]] HostWork& host() { return std::get<HostWork>(body); }
  [[nodiscard]] const HostWork& host() const { return std::get<HostWork>(body); }
  [[nodiscard]] Transfer& transfer() { return std::get<Transfer>(body); }
  [[nodiscard]] const Transfer& transfer() const { return std::get<Transfer>(body); }
  [[nodiscard]] Collective& collective() { return std::get<Collective>(body); }
  [[nodiscard]] const Collective& collective() const { return std::get<Collective>(body); }
  /// Of transfers, collectives and host work; else 0.
  [[nodiscard]] double bytes() const;
  /// Slots of its queue that it occupies.
  [[nodiscard]] double threads() const { return kind() == OpKind::HostWork ? host().threads : 1.0; }
  /// Of transfers and host work; else -1.
  [[nodiscard]] std::int32_t tensor() const;
  /// A transfer to or from a server of parameters, or work of one: where it starts and where it ends tell each other.
  [[nodiscard]] bool concerns_server() const;
  /// Where it is started; none: each rank of a collective does so for itself.
  [[nodiscard]] std::optional<End> started_at() const;
};

}  // namespace simsync
