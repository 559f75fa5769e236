// Questions of layouts for tests, and short searches of them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/problem/layout_question.hpp"
#include "strategies/layouts/layout_search.hpp"

namespace simsync::test {

/// GPT-2 with attention in one kernel on DGX A100, memory counted.
inline LayoutQuestion gpt2(Inputs& inputs, int workers, std::int64_t samples,
                           std::vector<std::pair<std::string, std::string>> settings = {}) {
  PredictRequest request{.model = "gpt2", .cluster = "dgx-a100", .strategy = "", .workers = workers};
  request.settings = {{"model.fused", "1"}, {"precision", "bf16"}};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return {request, samples, inputs};
}

inline LayoutSpace space_of(const LayoutQuestion& question, const std::map<std::string, std::string>& given = {}) {
  return layout_space(given, question.model(), question.cluster(), question.task());
}

inline LayoutSearchResult searched(LayoutQuestion& question, const LayoutSpace& space, LayoutMethod method) {
  return search_layouts(space, question.task(), [&](const Layout& layout) { return question.cost(layout); },
                        {.method = method, .draws = 300, .seed = 7});
}

}  // namespace simsync::test
