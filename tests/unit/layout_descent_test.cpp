// What searches of layouts find, beside the best of all layouts.
#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// How much slower the best layout of a descent is than the best of all, by estimates: 1 where it is the same.
double descent_over_all(const PredictRequest& request, std::int64_t samples,
                        const std::map<std::string, std::string>& space) {
  Inputs inputs;
  LayoutQuestion question(request, samples, inputs);
  const LayoutSpace layouts = space_of(question, space);
  const LayoutSearchResult all = searched(question, layouts, LayoutMethod::Exhaustive);
  const LayoutSearchResult found = searched(question, layouts, LayoutMethod::Coordinate);
  CHECK(found.evaluated.size() < all.evaluated.size() / 2);
  return found.evaluated.front().cost.step / all.evaluated.front().cost.step;
}

}  // namespace

TEST_CASE("a descent ends at the best of all layouts, or near it", "[layout]") {
  int questions = 0;
  int missed = 0;
  const auto note = [&](const PredictRequest& request, int per_worker,
                        const std::map<std::string, std::string>& space) {
    const double ratio = descent_over_all(request, std::int64_t{per_worker} * request.workers, space);
    INFO(request.model << " on " << request.workers << " of " << request.cluster << ", " << per_worker << " each");
    CHECK(ratio < 1.01);
    ++questions;
    if (ratio > 1.0 + 1e-9) ++missed;
  };
  for (const char* cluster : {"dgx-a100", "p3.16xlarge", "gce-p100"})
    for (const int workers : {4, 8})
      for (const int per_worker : {2, 8}) {
        for (const char* model : {"gpt2", "vgg16", "bert-base"})
          note({.model = model,
                .cluster = cluster,
                .strategy = "",
                .workers = workers,
                .settings = {{"optimizer", "adam"}}},
               per_worker, {{"splits", "rule"}});
        // All splits of its three dense layers.
        note({.model = "vgg16", .cluster = cluster, .strategy = "", .workers = workers}, per_worker,
             {{"tensor", "4"}, {"pipeline", "1"}, {"recompute", "none"}});
      }
  WARN("a descent ends at the best of all layouts in " << questions - missed << " of " << questions << " questions");
  CHECK(missed <= questions / 10);
}

TEST_CASE("annealing comes near the best layout", "[layout]") {
  Inputs inputs;
  for (const auto& [workers, samples] : {std::pair{4, std::int64_t{16}}, {8, std::int64_t{32}}}) {
    LayoutQuestion question = gpt2(inputs, workers, samples, {{"optimizer", "adam"}});
    const LayoutSpace space = space_of(question, {{"chunks", "2,3"}, {"micro_batch", "1,2,4,8"}, {"splits", "rule"}});
    const Seconds best = searched(question, space, LayoutMethod::Exhaustive).evaluated.front().cost.step;
    const Seconds annealed = searched(question, space, LayoutMethod::Anneal).evaluated.front().cost.step;
    CHECK(annealed < 1.1 * best);
    CHECK(annealed >= best);
  }
}

TEST_CASE("every method chooses how layers are split", "[layout]") {
  Inputs inputs;
  const PredictRequest request{.model = "vgg16", .cluster = "gce-p100", .strategy = "", .workers = 16};
  LayoutQuestion question(request, 512, inputs);
  const auto found = [&](LayoutMethod method, const std::string& splits) {
    return searched(question, space_of(question, {{"tensor", "1,4"}, {"micro_batch", "32,128"}, {"splits", splits}}),
                    method);
  };
  const LayoutSearchResult all = found(LayoutMethod::Exhaustive, "layers");
  const LayoutSearchResult rule = found(LayoutMethod::Exhaustive, "rule");
  CHECK(all.evaluated.size() > 50 * rule.evaluated.size());  // five splits of each of three layers
  const Seconds best = all.evaluated.front().cost.step;
  CHECK(best < 0.95 * rule.evaluated.front().cost.step);
  CHECK(found(LayoutMethod::Coordinate, "layers").evaluated.front().cost.step == best);
  for (const LayoutMethod method : {LayoutMethod::Anneal, LayoutMethod::Random}) {
    const LayoutSearchResult drawn = found(method, "layers");
    CHECK(drawn.evaluated.front().cost.step >= best);
    CHECK(std::count_if(drawn.evaluated.begin(), drawn.evaluated.end(),
                        [](const EvaluatedLayout& one) { return one.layout.splits.size() > 1; }) > 10);
  }
  LayoutQuestion large = gpt2(inputs, 8, 32);
  CHECK_THROWS_WITH(searched(large, space_of(large), LayoutMethod::Exhaustive),
                    ContainsSubstring("goes through at most 1000000 layouts"));
}
