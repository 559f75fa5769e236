// How many shards sparse variables are cut into: the curve, and a search that samples it.
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/builders.hpp"
#include "strategies/search/search.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

Problem problem_of(const char* model) {
  return prepare({.model = model,
                  .cluster = "titanx-40gbe",
                  .strategy = "parallax",
                  .workers = 4,
                  .batch = {},
                  .settings = {{"memory", "ignore"}}});
}

/// Shards of the sparse variable that has the most; 0: none.
std::size_t sparse_shards(const Strategy& strategy, const Model& model) {
  std::size_t out = 0;
  for (VariableId id = 0; id < model.variables().size(); ++id)
    if (model.variable(id).sparse) out = std::max(out, strategy.variables[id].shards.size());
  return out;
}

struct Found {
  SearchResult result;
  std::vector<std::size_t> tried;  ///< shards, behind the builder
};

/// With steps of seconds(n) for n shards.
Found find(const Problem& problem, const std::function<double(double)>& seconds) {
  const StrategySampler sampler(make_space({}, problem.cluster), {problem.model, problem.cluster, 4});
  const auto estimates = estimating_evaluator(problem);
  Found out;
  out.result = search(
      {.sampler = sampler,
       .estimates = *estimates,
       .builders = {{"parallax", problem.strategy}},
       .fits = [](const Strategy&) { return true; },
       .run =
           [&](const std::vector<Candidate>& candidates, int, int round) {
             std::vector<std::optional<Seconds>> steps;
             for (const Candidate& candidate : candidates) {
               const std::size_t shards = sparse_shards(candidate.strategy, problem.model);
               if (round > 0) out.tried.push_back(shards);
               steps.emplace_back(Seconds{seconds(static_cast<double>(shards))});
             }
             return steps;
           }},
      {.method = SearchMethod::Shards});
  return out;
}

}  // namespace

TEST_CASE("three counts make a curve, and its least is found between them", "[search]") {
  const auto step = [](std::int64_t n) { return 0.5 + 8.0 / static_cast<double>(n) + 0.02 * static_cast<double>(n - 1); };
  const auto curve = fit_shard_curve({{4, step(4)}, {16, step(16)}, {64, step(64)}});
  REQUIRE(curve);
  CHECK_THAT(curve->fixed, WithinRel(0.5, 1e-9));
  CHECK_THAT(curve->divided, WithinRel(8.0, 1e-9));
  CHECK_THAT(curve->per_shard, WithinRel(0.02, 1e-9));
  CHECK(curve->rms < 1e-12);
  CHECK(curve->best() == 20);  // sqrt(8 / 0.02)
  // Nothing is said of counts that nobody sampled.
  CHECK(fit_shard_curve({{1, step(1)}, {2, step(2)}, {4, step(4)}})->best() == 4);
  CHECK(fit_shard_curve({{32, step(32)}, {64, step(64)}, {128, step(128)}})->best() == 32);
  CHECK_FALSE(fit_shard_curve({{1, 1.0}, {2, 0.5}}));
}

TEST_CASE("shards are doubled while that helps, and the best of the curve comes last", "[search]") {
  // Four workers on hosts of one GPU each: four servers to begin with.
  const Problem problem = problem_of("ncf");
  const Found found = find(problem, [](double n) { return 0.5 + 8.0 / n + 0.02 * (n - 1.0); });
  CHECK(found.tried == std::vector<std::size_t>{4, 8, 16, 32, 20});  // 16: 1.30 s, 32: 1.37 s
  REQUIRE(found.result.shard_curve);
  CHECK(found.result.shard_curve->best() == 20);
  CHECK(sparse_shards(found.result.best()->candidate.strategy, problem.model) == 20);
}

TEST_CASE("shards are halved where doubling does not help", "[search]") {
  const Found found = find(problem_of("ncf"), [](double n) { return 0.5 + 0.1 * n; });
  CHECK(found.tried == std::vector<std::size_t>{4, 8, 2});
  CHECK(found.result.shard_curve->best() == 1);  // the builder, which was tried first
}

TEST_CASE("a model without sparse variables has no shards to count", "[search]") {
  CHECK_THROWS_WITH(find(problem_of("alexnet"), [](double) { return 1.0; }), ContainsSubstring("no sparse variables"));
}
