#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "models/trace/layer_names.hpp"
#include "models/trace/step_view.hpp"

namespace simsync {
namespace {

using detail::StepView;
using detail::view_of;

constexpr std::int64_t kElementBytes = 4;

/// Where one variable enters and leaves the stream, in every step.
struct Places {
  std::string variable;
  std::vector<std::size_t> use;    ///< by step: position of its first use
  std::vector<std::size_t> ready;  ///< by step: position after which its gradient is ready
  std::size_t sum_use = 0;
  std::size_t sum_ready = 0;
};

class LayerFinder {
public:
  LayerFinder(const Trace& trace, const TraceHints& hints);
  TracedModel find();

private:
  void choose_variables();
  void expect_alike(std::size_t step) const;
  [[nodiscard]] Places places_of(const std::string& variable) const;
  [[nodiscard]] TracedVariable traced(const std::string& variable) const;
  [[nodiscard]] std::vector<LayerTime> times_of(std::size_t step);
  void add_layers();
  void name_layers();
  void leave_out(const std::map<std::string, std::int64_t>& bytes, const std::map<std::string, std::int64_t>& others,
                 const char* what);

  const Trace& trace_;
  const TraceHints& hints_;
  std::vector<StepView> views_;
  std::vector<std::string> variables_;       ///< received and sent
  std::vector<std::vector<Places>> groups_;  ///< variables by layer, in execution order
  std::set<std::string> early_;              ///< whose gradients were ready before those of later layers
  Seconds earliest_;                         ///< by how much at most
  TracedModel out_;
};

LayerFinder::LayerFinder(const Trace& trace, const TraceHints& hints) : trace_(trace), hints_(hints) {
  for (const TraceStep& step : trace.steps) views_.push_back(view_of(step, hints));
}

/// Variables of `bytes` that `others` lacks, in a note.
void LayerFinder::leave_out(const std::map<std::string, std::int64_t>& bytes,
                            const std::map<std::string, std::int64_t>& others, const char* what) {
  std::vector<std::string> names;
  for (const auto& [name, count] : bytes) {
    if (!others.contains(name)) names.push_back(fmt::format("{} ({})", name, format_bytes(static_cast<double>(count))));
  }
  if (!names.empty()) out_.notes.push_back(fmt::format("left out, {}: {}", what, fmt::join(names, ", ")));
}

void LayerFinder::expect_alike(std::size_t step) const {
  const StepView& first = views_.front();
  const StepView& other = views_[step];
  const auto compare = [&](const auto& a, const auto& b, const char* verb) {
    for (const auto& [name, bytes] : a) {
      const auto found = b.find(name);
      if (found == b.end() || found->second != bytes)
        throw InputError(fmt::format("steps {} and {} differ: '{}' is {} with {} B in one and {} in the other",
                                     trace_.steps.front().number, trace_.steps[step].number, name, verb, bytes,
                                     found == b.end() ? "not at all" : fmt::format("with {} B", found->second)),
                         "every step of a trace has to be one of the same training");
    }
  };
  compare(first.received, other.received, "received");
  compare(other.received, first.received, "received");
  compare(first.sent, other.sent, "sent");
  compare(other.sent, first.sent, "sent");
}

void LayerFinder::choose_variables() {
  const StepView& first = views_.front();
  leave_out(first.received, first.sent, "because received and never sent");
  leave_out(first.sent, first.received, "because sent and never received");
  for (std::size_t step = 1; step < views_.size(); ++step) expect_alike(step);
  // Of variables that are alike the one whose gradient leaves last was registered first.
  const auto& ops = trace_.steps.front().ops;
  std::set<std::string> seen;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (op->kind == TraceOpKind::Send && first.received.contains(op->variable) && seen.insert(op->variable).second)
      variables_.push_back(op->variable);
  }
  if (variables_.empty())
    throw InputError("no variable of the trace is both received and sent",
                     "a trace has the receives, the compute and the sends of one worker, or all-reduces and compute "
                     "that names what it reads");
}

Places LayerFinder::places_of(const std::string& variable) const {
  Places places{.variable = variable, .use = {}, .ready = {}};
  for (std::size_t step = 0; step < views_.size(); ++step) {
    const StepView& view = views_[step];
    const int number = trace_.steps[step].number;
    const auto use = view.first_use.find(variable);
    if (use == view.first_use.end())
      throw InputError(fmt::format("step {}: no compute operation comes after the receive of '{}'", number, variable),
                       "layers are told by what waits for what: column 'after'");
    const auto ready = view.ready.find(variable);
    if (ready == view.ready.end())
      throw InputError(fmt::format("step {}: the send of '{}' comes after no compute operation", number, variable),
                       "layers are told by what waits for what: column 'after'");
    places.use.push_back(use->second);
    places.ready.push_back(ready->second);
    places.sum_use += use->second;
    places.sum_ready += ready->second;
  }
  return places;
}

TracedVariable LayerFinder::traced(const std::string& variable) const {
  const auto hint = hints_.variables.find(variable);
  if (hint != hints_.variables.end()) return {variable, hint->second.shape};
  const std::int64_t bytes = views_.front().received.at(variable);
  if (bytes <= 0) throw InputError(fmt::format("variable '{}' has no bytes in the trace", variable));
  return {variable, {(bytes + kElementBytes - 1) / kElementBytes}};
}

/// Variables that are first used and become ready together make a layer. Of variables that are used together, those
/// whose gradients are ready last come first, since the backward pass goes from the last layer to the first.
void LayerFinder::add_layers() {
  std::vector<Places> all;
  for (const std::string& variable : variables_) all.push_back(places_of(variable));
  std::stable_sort(all.begin(), all.end(), [](const Places& a, const Places& b) {
    return a.sum_use != b.sum_use ? a.sum_use < b.sum_use : a.sum_ready > b.sum_ready;
  });
  for (Places& places : all) {
    const bool same =
        !groups_.empty() && groups_.back().front().use == places.use && groups_.back().front().ready == places.ready;
    if (!same) groups_.emplace_back();
    groups_.back().push_back(std::move(places));
  }
  out_.layers.push_back({.name = "outside", .kind = LayerKind::Elementwise, .variables = {}});
  for (const auto& group : groups_) {
    TracedLayer layer;
    for (const Places& places : group) layer.variables.push_back(traced(places.variable));
    const auto hint = hints_.variables.find(group.front().variable);
    if (hint != hints_.variables.end()) layer.kind = hint->second.kind;
    out_.layers.push_back(std::move(layer));
  }
  name_layers();
}

/// Where the variables of one folder are layers apart, the largest of them is called like the folder.
void LayerFinder::name_layers() {
  detail::LayerNames names;
  (void)names.unique(out_.layers.front().name);
  const auto bytes_of = [&](std::size_t group) {
    std::int64_t bytes = 0;
    for (const Places& places : groups_[group]) bytes += views_.front().received.at(places.variable);
    return bytes;
  };
  std::vector<std::size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bytes_of(a) > bytes_of(b); });
  for (const std::size_t group : order) {
    std::vector<std::string> members;
    for (const Places& places : groups_[group]) members.push_back(places.variable);
    out_.layers[group + 1].name = names.of(members);
  }
}

/// Times of the layers in one step. The forward pass of a layer begins where it or a later one is first used, its
/// backward pass ends where its gradients and those of all later ones are ready.
std::vector<LayerTime> LayerFinder::times_of(std::size_t step) {
  const StepView& view = views_[step];
  const std::size_t count = groups_.size();
  std::vector<std::size_t> begin(count + 1, view.backward);
  std::vector<std::size_t> end(count + 1, view.backward);
  for (std::size_t layer = count; layer-- > 0;) {
    begin[layer] = std::min(begin[layer + 1], groups_[layer].front().use[step]);
    const std::size_t ready = groups_[layer].front().ready[step];
    end[layer] = std::max(end[layer + 1], ready);
    if (ready >= end[layer] || view.busy[end[layer]] == view.busy[ready]) continue;
    for (const Places& places : groups_[layer]) early_.insert(places.variable);
    earliest_ = std::max(earliest_, view.busy[end[layer]] - view.busy[ready]);
  }
  std::vector<LayerTime> times{{view.busy[begin[0]], view.busy.back() - view.busy[end[0]]}};
  for (std::size_t layer = 0; layer < count; ++layer)
    times.push_back(
        {view.busy[begin[layer + 1]] - view.busy[begin[layer]], view.busy[end[layer]] - view.busy[end[layer + 1]]});
  return times;
}

TracedModel LayerFinder::find() {
  choose_variables();
  add_layers();
  bool outside = false;
  for (std::size_t step = 0; step < views_.size(); ++step) {
    out_.steps.push_back(times_of(step));
    const LayerTime& rest = out_.steps.back().front();
    outside = outside || rest.forward.value() > 0.0 || rest.backward.value() > 0.0;
  }
  if (!outside) {
    out_.layers.erase(out_.layers.begin());
    for (auto& times : out_.steps) times.erase(times.begin());
  }
  if (!early_.empty())
    out_.notes.push_back(
        fmt::format("{} gradients are ready before those of later layers, by up to {}, and count as ready with them",
                    early_.size(), format_seconds(earliest_)));
  return std::move(out_);
}

}  // namespace

TracedModel layers_of(const Trace& trace, const TraceHints& hints) {
  SIMSYNC_ASSERT(!trace.steps.empty());
  return LayerFinder(trace, hints).find();
}

}  // namespace simsync
