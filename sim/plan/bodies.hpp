// What an Op does: compute, work of a host, a transfer or a collective.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/collectives.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync {

enum class Phase : std::uint8_t {
  Forward,
  Backward,
  Recompute,   ///< activations that were dropped, before a block's backward pass
  MicroSteps,  ///< whole ones of which nothing is sent
  Copy,
  Aggregate,
  Push,
  RemoteCall,
  Dispatch,
  Serve,
  Update,
  Pull,
  Synchronize,
  SplitLayer,   ///< what ranks that share out layers, experts or tokens exchange of a layer
  Activations,  ///< of a micro-step from stage to stage, or their gradients back
  Start
};
const char* name_of(Phase phase);

/// One end of a transfer, or the place of a host's work.
struct End {
  enum class Kind : std::uint8_t {
    Device,  ///< the GPU of the group's first rank
    Host,    ///< the host of that rank's node
    Server,  ///< of parameters, at `place`, the same for every group
    Fixed,   ///< a worker's host or the job's, at `place`, the same for every group
  };
  Kind kind = Kind::Host;
  Place place;

  [[nodiscard]] bool is_server() const { return kind == Kind::Server; }
  /// At `place`, whatever the group.
  [[nodiscard]] bool is_fixed() const { return kind == Kind::Server || kind == Kind::Fixed; }
};

/// A stretch of a compute op that was written as an op of its own before neighbors were merged.
struct ComputePart {
  std::int32_t layer = -1;
  Phase phase = Phase::Forward;
  Seconds duration;
  std::optional<StageTask> pass;  ///< of a stage, to which it belongs; none: the strategy has no stages
};

/// Longer than any message: a transfer with such a turn sends all that it has left.
inline constexpr double kWhole = std::numeric_limits<double>::infinity();

/// The rank's device is busy.
struct Compute {
  Seconds duration;                ///< on a device of speed 1
  std::vector<ComputePart> parts;  ///< may be empty
  /// How long it took in each step that was profiled, `duration` being the mean; an asynchronous rank draws one step
  /// for all ops.
  std::vector<Seconds> samples;
};

/// What a host, or the GPU of a server, is busy with.
enum class HostAction : std::uint8_t {
  Wait,        ///< nothing: time passes
  Sum,         ///< a gradient is added to others
  Apply,       ///< an update of a variable
  Serve,       ///< a read of a variable is answered: before all that waits for a thread
  Dispatch,    ///< a thread is woken
  RemoteCall,  ///< a message is handed to the network, or taken from it
};

/// As which phase people read of it.
Phase phase_of(HostAction action);

struct HostWork {
  HostAction action = HostAction::Wait;
  End at;
  Seconds duration;
  Seconds late;              ///< instead of `duration`, where what waits for it has begun without it
  double threads = 1;        ///< slots of its queue that it occupies
  double bytes = 0.0;        ///< of the gradient that is summed or applied
  std::int32_t tensor = -1;  ///< see Transfer::tensor
  /// Its instances take turns on their queue, which serves other ops meanwhile: additions to one accumulator.
  bool one_at_a_time = false;
};

/// Bytes move from `from` to `to`.
struct Transfer {
  End from;
  End to;
  double bytes = 0.0;  ///< payload
  int messages = 1;    ///< that the bytes travel in
  Seconds setup;       ///< before bytes move
  Seconds packing;     ///< the part of `setup` in which the device encodes gradients; it comes first
  /// The piece of a variable that a server keeps: transfers and host work of one tensor share its buffers. -1: none,
  /// where no server is concerned.
  std::int32_t tensor = -1;
  /// The receiver asks for it once its own queue lets it.
  bool receiver_initiated = false;
  int connection = 0;  ///< which one, where several processes of a node have one each
  /// Between hosts: parallel streams of the connection between the two nodes, which all transfers of that direction and
  /// `connection` share; 0: a stream of its own.
  int streams = 0;
  /// On such a stream: bytes until the next one has its turn, and at each later turn of its own.
  double first_turn = kWhole;
  double later_turn = kWhole;

  /// A server's host is asked for it, whose threads have to be woken.
  [[nodiscard]] bool asks_host() const { return receiver_initiated && from.place.gpu < 0; }
  /// It carries a gradient to a server.
  [[nodiscard]] bool pushes() const { return to.is_server(); }
};

/// All ranks of the group take part.
struct Collective {
  CollectivePrimitive primitive = CollectivePrimitive::AllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  std::string protocol;  ///< name in CollectiveCosts::protocols; empty: the cluster tells none apart
  int root = 0;          ///< place in the group: whose payload it is, or who has the sum
  double bytes = 0.0;    ///< payload
  Seconds setup;         ///< before bytes move
  Seconds packing;       ///< the part of `setup` in which the device copies or encodes gradients; it comes first
  /// Measured over modelled time of such a one (CollectiveCosts::measured): the simulator counts its rounds, costs and
  /// bytes, so many times. `setup` has it already.
  double ratio = 1.0;

  [[nodiscard]] CollectiveKind kind() const { return {primitive, algorithm, root}; }
};

}  // namespace simsync
