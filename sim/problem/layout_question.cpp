#include "sim/problem/layout_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/precision.hpp"
#include "sim/plan/stages_estimate.hpp"
#include "sim/problem/least_bytes.hpp"
#include "sim/problem/read_request.hpp"
#include "strategies/builders.hpp"

namespace simsync {

struct LayoutQuestion::Parts {
  PredictRequest request;
  LayoutTask task;
  Inputs& inputs;
  detail::ReadRequest read;
  StagesEstimator estimator;
  std::map<std::pair<std::int64_t, Recompute>, Profile> profiles = {};
  std::string first_refusal = {};

  Parts(PredictRequest asked, const LayoutTask& of, Inputs& given)
      : request(std::move(asked)),
        task(of),
        inputs(given),
        read(detail::read_request(request, given)),
        estimator(read.model, read.cluster, of.workers) {}

  const Profile& profile(const Layout& layout, const Strategy& strategy) {
    const auto found = profiles.find({layout.micro_batch, layout.recompute});
    if (found != profiles.end()) return found->second;
    Profile profile =
        detail::profile_for(read, request, strategy, layout.micro_batch * strategy.graph.micro_steps, inputs);
    // How devices of other kinds compare hardly depends on the micro-batch: by the first that is asked for.
    if (profiles.empty()) detail::relate_devices(read, profile);
    return profiles.emplace(std::pair{layout.micro_batch, layout.recompute}, std::move(profile)).first->second;
  }
};

namespace {

constexpr const char* kStrategyPrefix = "strategy.";

std::optional<std::string> option_of(const std::string& key) {
  const std::string prefix = kStrategyPrefix;
  if (!key.starts_with(prefix)) return std::nullopt;
  return key.substr(prefix.size());
}

void refuse_what_layouts_say(const PredictRequest& request) {
  const std::vector<std::string>& said = layout_options();
  for (const auto& [key, value] : request.settings) {
    const auto option = option_of(key);
    if (option && std::find(said.begin(), said.end(), *option) != said.end())
      throw InputError(fmt::format("--set {}: a search of layouts chooses it by itself", key),
                       "'simsync list space' shows what can be restricted, with --set space.DIMENSION=VALUES");
    if (option && !has_option("ddp", *option) && !has_option("fsdp", *option))
      throw InputError(fmt::format("--set {}: layouts are strategies of ddp and fsdp, which have no such option", key));
  }
}

}  // namespace

LayoutQuestion::LayoutQuestion(const PredictRequest& request, std::int64_t samples, Inputs& inputs) {
  const LayoutTask task{.workers = request.workers, .samples = samples};
  refuse_what_layouts_say(request);
  PredictRequest asked = request;
  asked.strategy = "ddp";
  asked.batch.reset();
  parts_ = std::make_unique<Parts>(std::move(asked), task, inputs);
  refuse_values_of_options();
}

/// A value that no layout takes would silently make all layouts of its builder impossible.
void LayoutQuestion::refuse_values_of_options() const {
  for (const char* builder : {"ddp", "fsdp"}) {
    try {
      (void)build(builder, {}, 1);
    } catch (const PlanError&) {
      // Another layout may be able to.
    }
  }
}

LayoutQuestion::~LayoutQuestion() = default;
LayoutQuestion::LayoutQuestion(LayoutQuestion&&) noexcept = default;

const Model& LayoutQuestion::model() const {
  return parts_->read.model;
}

const Cluster& LayoutQuestion::cluster() const {
  return parts_->read.cluster;
}

const OptimizerState& LayoutQuestion::optimizer() const {
  return parts_->read.settings.optimizer;
}

const LayoutTask& LayoutQuestion::task() const {
  return parts_->task;
}

PredictRequest LayoutQuestion::request_for(const Layout& layout) const {
  PredictRequest out = parts_->request;
  out.strategy = builder_of(layout);
  out.batch = parts_->task.batch(layout);
  std::erase_if(out.settings, [&](const auto& setting) {
    const auto option = option_of(setting.first);
    return option && !has_option(out.strategy, *option);
  });
  for (const auto& [option, value] : options_of(layout, parts_->task))
    out.settings.emplace_back(kStrategyPrefix + option, value);
  return out;
}

Strategy LayoutQuestion::strategy(const Layout& layout) const {
  return build(builder_of(layout), options_of(layout, parts_->task), parts_->task.batch(layout));
}

Strategy LayoutQuestion::build(const std::string& builder, std::map<std::string, std::string> options,
                               std::int64_t batch) const {
  for (const auto& [option, value] : parts_->read.settings.strategy)
    if (has_option(builder, option)) options.emplace(option, value);
  return build_strategy(builder, {.model = model(),
                                  .cluster = cluster(),
                                  .workers = parts_->task.workers,
                                  .batch = batch,
                                  .options = std::move(options),
                                  .seed = parts_->read.settings.seed});
}

LayoutQuestion::Asked LayoutQuestion::asked(const Layout& layout) const {
  Asked out{.strategy = strategy(layout), .profile = {}};
  out.profile = parts_->profile(layout, out.strategy);
  out.profile.micro_steps = out.strategy.graph.micro_steps;
  return out;
}

RankMemory LayoutQuestion::memory(const Asked& of) const {
  return stage_memory(parts_->estimator.stages(of.strategy.graph.parallel), cluster(), of.strategy, of.profile,
                      optimizer());
}

RankMemory LayoutQuestion::memory(const Layout& layout) const {
  return memory(asked(layout));
}

SentBytes LayoutQuestion::sent(const Layout& layout) const {
  const Asked of = asked(layout);
  return sent_bytes(parts_->estimator.stages(of.strategy.graph.parallel), of.strategy, of.profile);
}

double LayoutQuestion::least_bytes_sent() const {
  constexpr double kSingle = 4.0;
  constexpr double kHalf = 2.0;
  const std::string precision = parts_->read.settings.precision.value_or(cluster().precision);
  return (has_half_activations(precision) ? kHalf : kSingle) *
         least_elements_sent(model(), parts_->task.workers, parts_->task.samples);
}

const std::string& LayoutQuestion::first_refusal() const {
  return parts_->first_refusal;
}
bool LayoutQuestion::ignores_memory() const {
  return parts_->read.settings.ignore_memory;
}

std::optional<LayoutCost> LayoutQuestion::cost(const Layout& layout) {
  const auto refused = [&](const std::exception& why) {
    if (parts_->first_refusal.empty()) parts_->first_refusal = why.what();
    return std::nullopt;
  };
  try {
    const Asked of = asked(layout);
    const RankMemory needed = memory(of);
    LayoutCost out{.step = parts_->estimator.estimate(of.strategy, of.profile).step};
    if (!needed.fits() && !parts_->read.settings.ignore_memory)
      out.over.count = needed.need.total().count - needed.usable.count;
    return out;
  } catch (const PlanError& why) {
    return refused(why);
  } catch (const InputError& why) {
    return refused(why);  // an option that this mesh does not take
  }
}

}  // namespace simsync
