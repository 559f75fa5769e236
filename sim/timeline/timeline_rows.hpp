// Rows of a timeline: which process and thread an event belongs to, without overlaps. Private to sim/timeline.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/timeline/instance_filter.hpp"
#include "sim/timeline/prediction.hpp"
#include "sim/timeline/timeline.hpp"

namespace simsync::detail {

/// A row before it is split: process, then where it stands in it.
struct RowKey {
  int process = 0;
  int order = 0;     ///< among the rows of the process; equal ones by name
  std::string name;  ///< `gpu0 compute`, `nic-out`
  auto operator<=>(const RowKey&) const = default;
};

/// One box. What it shows is looked up when it is written.
struct TimelineEvent {
  enum class Kind : std::uint8_t {
    Iteration,
    Op,
    Part,
    Pass,  ///< of a stage of a pipeline, by its first part
    Flow,  ///< flows of one op that cross a link at the same time
    More,  ///< what found no row of its own
  };
  std::int64_t begin = 0;  ///< ns
  std::int64_t end = 0;
  Kind kind = Kind::Op;
  std::int32_t index = 0;   ///< of the iteration, span or flow
  std::int32_t part = 0;    ///< Part, Pass: index into Compute::parts
  std::int32_t count = 1;   ///< Flow, More: how many
  double bytes = 0.0;       ///< Flow: all of them together
  int thread = 0;           ///< set by finish()
  std::int32_t merged = 1;  ///< boxes that it stands for; it shows the first
  std::int32_t id = -1;     ///< of the box of a span, in the order of their making; -1: not of a span
};

/// No box.
inline constexpr std::size_t kNoBox = static_cast<std::size_t>(-1);

/// Threads that a row is split into at most; one more tells how much did not fit.
inline constexpr int kMostThreads = 8;

/// Numbers of processes: node k is process k + kFirstNode.
inline constexpr int kJobProcess = 1;
inline constexpr int kNetworkProcess = 2;
inline constexpr int kFirstNode = 3;

/// Collects the events of a prediction by row and gives those that overlap threads of their own.
class TimelineRows {
public:
  TimelineRows(const Plan& plan, const Prediction& prediction, const TimelineOptions& options);

  struct Thread {
    int process = 0;
    int number = 0;
    std::string name;
  };
  /// In order of process and row.
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }
  /// In order of thread, then of time.
  [[nodiscard]] const std::vector<TimelineEvent>& events() const { return events_; }
  /// Processes that have a thread, ascending.
  [[nodiscard]] std::vector<int> processes() const;
  /// Indices of the iterations that are drawn: the first, and one past the last.
  [[nodiscard]] std::pair<std::size_t, std::size_t> iterations() const { return {begin_, end_}; }
  [[nodiscard]] bool draws_link(const RowKey& row) const;
  /// What was left out, for people.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }
  [[nodiscard]] const InstanceFilter& filter() const { return filter_; }
  /// Index into events() of the box in which a span (index into Prediction::spans) begins: its own, or the one that it
  /// was merged into. A collective has one on every device, and the first counts. kNoBox: it is not drawn.
  [[nodiscard]] std::size_t box_of_begin(std::size_t span) const { return box_of(first_id_[span]); }
  /// Likewise where it ends.
  [[nodiscard]] std::size_t box_of_end(std::size_t span) const { return box_of(last_id_[span]); }

private:
  void add_iterations();
  /// Adds the box of a span, or of a part of it.
  void add_box(const RowKey& row, TimelineEvent event);
  [[nodiscard]] std::size_t box_of(std::int32_t id) const;
  void add_span(std::int32_t index);
  void add_parts(std::int32_t index, Place gpu);
  /// A part of the pass that is the last in its row makes that one longer.
  void add_to_pass(Place gpu, const TimelineEvent& part);
  void add_flow(std::int32_t index);
  [[nodiscard]] Place place_of(const End& end, const Op& op, int group) const;
  [[nodiscard]] std::vector<Place> devices_of(const Op& op, int group) const;
  [[nodiscard]] bool draws(OpId op, int group, int iteration) const;
  void choose_iterations(const TimelineOptions& options);
  /// Merges what is too short until there are at most so many boxes.
  void thin_out(std::size_t most_boxes);
  void finish();
  /// Distributes events, which are in order of time, over threads from number `first` on; returns how many.
  int spread(std::vector<TimelineEvent>& events, int first);

  const Plan& plan_;
  const Prediction& prediction_;
  InstanceFilter filter_;
  std::size_t begin_ = 0;  ///< first iteration that is drawn
  std::size_t end_ = 0;    ///< one past the last
  std::vector<std::string> left_out_;
  std::map<RowKey, std::vector<TimelineEvent>> rows_;
  std::map<std::tuple<int, OpId, int>, std::size_t> last_flow_;  ///< link, op, iteration -> latest event of its row
  std::vector<Thread> threads_;
  std::vector<TimelineEvent> events_;
  std::vector<std::int32_t> first_id_, last_id_;  ///< of the boxes of each span; -1: none
  std::vector<std::int32_t> merged_into_;         ///< by id: the id of the box that took it in; -1: none did
  std::vector<std::size_t> index_of_;             ///< by id: in events_, of boxes that were not taken in
};

/// Time on the grid of a timeline.
std::int64_t nanoseconds(Seconds t);

/// The row of a link: `node3/nic-out` is `nic-out` of node 3, `node0 to node1 connection` is `connection to node1` of
/// node 0.
RowKey row_of_link(const std::string& link);

}  // namespace simsync::detail
