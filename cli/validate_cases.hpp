// `simsync validate STUDY --case ...`: single cases of a study.
#pragma once
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "validate/evaluate.hpp"

namespace simsync {

struct CaseFlags {
  std::vector<std::string> cases;  ///< ids or patterns
  std::string csv;                 ///< of the rows; empty: standard output, unless they are explained there
  bool explain = false;
};

/// Writes the rows of the cases, and what `predict --explain` says of each beside its measurement. A case that cannot
/// be predicted is a finding. The caller prints `study.notes`.
StudyResult show_cases(const Study& study, const CaseFlags& flags, Outcome& outcome);

}  // namespace simsync
