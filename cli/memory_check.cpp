#include "cli/memory_check.hpp"

#include <iostream>

#include "base/error.hpp"
#include "base/wrap.hpp"
#include "cli/terminal.hpp"

namespace simsync {

void check_memory(const Problem& problem, const std::string& who) {
  if (problem.memory.fits()) return;
  const std::string text = (who.empty() ? "" : who + " ") + misfit_text(problem.memory);
  if (!problem.ignore_memory)
    throw InputError(text, remedy_text(problem.memory) + "; --set memory=ignore predicts it all the same");
  std::cerr << wrapped("warning: " + text, terminal_style().width, 2) << '\n';
}

}  // namespace simsync
