// What is predicted for the cases of a study, one after another or in processes side by side. Private to this folder.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "validate/evaluate.hpp"
#include "validate/predictor.hpp"

namespace simsync::detail {

/// A prediction, or why there is none.
struct CaseAnswer {
  Answer answer;
  std::string failure;
};

/// A line of numbers, then the failure: what one process tells another. Numbers come back to the last digit.
std::string to_text(const CaseAnswer& answer);
/// Of what to_text() wrote.
CaseAnswer case_answer_of(const std::string& text);

/// Calls `ask(i)` for i = 0 ... count-1 and hands the answers to `keep` in the order of i.
void answer_cases(std::size_t count, const std::function<CaseAnswer(std::size_t)>& ask,
                  const std::function<void(std::size_t, const CaseAnswer&)>& keep, const SideBySide& side_by_side);

}  // namespace simsync::detail
