#include "validate/case_answers.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync::detail {
namespace {

std::string text_of(Seconds time) {
  return format_shortest(time.value());
}

Seconds next_of(std::istream& numbers) {
  std::string word;
  numbers >> word;
  const auto value = parse_number(word);
  SIMSYNC_ASSERT(value.has_value());
  return Seconds{*value};
}

}  // namespace

std::string to_text(const CaseAnswer& answer) {
  std::string numbers = text_of(answer.answer.step);
  if (const auto& interval = answer.answer.interval)
    numbers += fmt::format(" {} {}", text_of(interval->low), text_of(interval->high));
  return numbers + '\n' + answer.failure;
}

CaseAnswer case_answer_of(const std::string& text) {
  const std::size_t end = text.find('\n');
  SIMSYNC_ASSERT(end != std::string::npos);
  std::istringstream numbers(text.substr(0, end));
  CaseAnswer out{.answer = {}, .failure = text.substr(end + 1)};
  out.answer.step = next_of(numbers);
  if (numbers.eof()) return out;
  const Seconds low = next_of(numbers);
  const Seconds high = next_of(numbers);
  out.answer.interval = StepInterval{low, high};
  return out;
}

void answer_cases(std::size_t count, const std::function<CaseAnswer(std::size_t)>& ask,
                  const std::function<void(std::size_t, const CaseAnswer&)>& keep, const SideBySide& side_by_side) {
  if (side_by_side) {
    side_by_side(
        count, [&](std::size_t i) { return to_text(ask(i)); },
        [&](std::size_t i, const std::string& text) { keep(i, case_answer_of(text)); });
    return;
  }
  for (std::size_t i = 0; i < count; ++i) keep(i, ask(i));
}

}  // namespace simsync::detail
