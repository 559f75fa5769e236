#include "validate/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parse_units.hpp"

namespace simsync::detail {

std::string Cells::text() const {
  std::string out;
  for (const auto& [column, value] : cells) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", column, value);
  return out;
}
namespace {

/// Something that is about a case.
template <typename Question>
auto about(const Study& study, const Case& c, const Question& question) {
  try {
    return question();
  } catch (const PlanError& e) {
    throw PlanError(fmt::format("case '{}': {}", c.id, e.what()));
  } catch (const InputError& e) {
    auto findings = e.diagnostics();
    for (auto& finding : findings) {
      if (finding.note.empty())
        finding.note = fmt::format("case '{}', {}:{}", c.id, study.table.file(), study.table.line(c.row));
    }
    throw InputError(std::move(findings));
  }
}

Seconds checked(Seconds time) {
  if (!(time.value() > 0.0) || !std::isfinite(time.value()))
    throw PlanError(fmt::format("the predicted step time is {} s", time.value()));
  return time;
}

}  // namespace

PredictRequest Questions::request(const Case& c, const std::vector<SetValue>& values) const {
  PredictRequest request = c.request;
  for (const auto& value : values) {
    if (value.is_for(study_, c)) request.settings.emplace_back(value.parameter->key, value.text);
  }
  return request;
}

const Case& Questions::case_of_row(std::size_t row) const {
  return *std::find_if(cases_.begin(), cases_.end(), [&](const Case& c) { return c.row == row; });
}

PredictRequest Questions::question(const Case& c, const std::vector<SetValue>& values) {
  PredictRequest out = request(c, values);
  if (c.whole_step_row) {
    const Case& whole = case_of_row(*c.whole_step_row);
    const Seconds compute =
        about(study_, whole, [&] { return whole_steps_.compute(request(whole, values), whole.measured); });
    out.settings.emplace_back("step_time", format_number(compute.value()) + "s");
  }
  return out;
}

Seconds Questions::answer(const Case& c, const PredictRequest& question) {
  return about(study_, c, [&] { return checked(predictor_.step_time(question)); });
}

Answer Questions::answer_with_interval(const Case& c, const PredictRequest& question) {
  return about(study_, c, [&] {
    const Answer answer = predictor_.answer(question);
    (void)checked(answer.step);
    return answer;
  });
}

Seconds Questions::saturated(const Case& c, const std::vector<SetValue>& values) {
  return about(study_, c, [&] {
    const ClosedNetwork network = predictor_.network(request(c, values));
    const Station* most = network.bottleneck();
    if (most == nullptr) throw PlanError("nothing is shared, so nothing saturates");
    return c.request.workers * most->demand;
  });
}

}  // namespace simsync::detail
