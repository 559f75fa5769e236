// Settings that other settings leave without effect.
#include "sim/problem/without_effect.hpp"

#include "sim/engine/predict.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("settings without effect are told", "[predict]") {
  const auto notes = [](std::vector<std::pair<std::string, std::string>> settings) {
    settings.emplace_back("optimizer", "adam");
    return prepare(
               {.model = "gpt2", .cluster = "dgx-1", .strategy = "fsdp", .workers = 8, .settings = std::move(settings)})
        .notes;
  };
  using Notes = std::vector<std::string>;
  CHECK(notes({{"strategy.prefetch", "3"}, {"strategy.reshard_after_forward", "false"}}).empty());
  CHECK(notes({{"strategy.stage", "1"},
               {"strategy.prefetch", "3"},
               {"strategy.reshard_after_forward", "false"},
               {"strategy.reduce_every_micro_step", "false"}}) ==
        Notes{"prefetch has no effect: it is for stage 3, and this is stage 1",
              "reshard_after_forward has no effect: it is for stage 3, and this is stage 1",
              "reduce_every_micro_step has no effect: it is for stages 2 and 3, and this is stage 1"});
  CHECK(notes({{"strategy.overlap_gather", "false"}}) ==
        Notes{"overlap_gather has no effect: it is for stages 1 and 2, and this is stage 3"});
  CHECK(notes({{"strategy.sequence", "true"}, {"strategy.context_overlap", "true"}}) ==
        Notes{"sequence has no effect: there is one tensor-parallel rank",
              "context_overlap has no effect: there is one context-parallel rank"});
  CHECK(notes({{"strategy.sequence", "true"}, {"strategy.tensor", "2"}}).empty());
  CHECK(notes({{"strategy.tensor_overlap", "true"}}) ==
        Notes{"tensor_overlap has no effect: there is one tensor-parallel rank"});
  CHECK(notes({{"strategy.tensor_overlap", "true"}, {"strategy.tensor", "2"}}) ==
        Notes{"tensor_overlap has no effect: it is for what sequence=true exchanges"});
  CHECK(notes({{"strategy.context_balanced", "false"}}) ==
        Notes{"context_balanced has no effect: there is one context-parallel rank"});
  CHECK(notes({{"precision", "fp32"}, {"master_weights", "true"}}) ==
        Notes{"master_weights has no effect: weights have four bytes in fp32"});
  CHECK(notes({{"precision", "fp16"}, {"master_weights", "true"}}).empty());
}

TEST_CASE("a sharding block of a strategy that shards nothing is told", "[predict]") {
  Strategy strategy;
  strategy.graph.sharding.stage = 2;
  std::vector<std::string> notes;
  detail::note_without_effect(strategy, notes);
  CHECK(notes == std::vector<std::string>{"sharding has no effect: no variable is sharded"});
}

TEST_CASE("where the update is measured its optimizer counts for memory only", "[predict]") {
  const auto notes = [](ProfileSource source, const OptimizerState& optimizer, const char* precision) {
    Profile profile;
    profile.source = source;
    profile.precision = precision;
    std::vector<std::string> out;
    detail::note_without_effect(optimizer, profile, out);
    return out;
  };
  using Notes = std::vector<std::string>;
  const OptimizerState adam{.optimizer = Optimizer::Adam, .master_weights = true};
  CHECK(notes(ProfileSource::Measured, adam, "bf16") ==
        Notes{"optimizer counts for memory only: the time of the update is measured",
              "master_weights counts for memory only: the time of the update is measured"});
  CHECK(notes(ProfileSource::Measured, adam, "amp") ==
        Notes{"master_weights has no effect: weights have four bytes in amp",
              "optimizer counts for memory only: the time of the update is measured"});
  CHECK(notes(ProfileSource::Roofline, adam, "bf16").empty());
  CHECK(notes(ProfileSource::Measured, {.fp32_gradients = true}, "bf16").empty());
}
