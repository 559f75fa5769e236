// A finished study as text: the CSV that scripts rely on and the summary for people.
#pragma once
#include <string>
#include <vector>

#include "validate/evaluate.hpp"

namespace simsync {

/// Begins with study,case,model,cluster,strategy,workers,measured_step_time_s,predicted_step_time_s,error_pct.
std::string comparison_header();
/// One line per case, in the order of the table, without the header. A failed prediction leaves its cells empty.
std::vector<std::string> comparison_rows(const StudyResult& result);

/// study,cases,mape_pct,p90_error_pct,pairwise_accuracy,kendall_tau, then counts, the verdict and regret. A figure that
/// has nothing to be taken over is an empty cell.
std::string summary_header();
std::string summary_row(const StudyResult& result);

/// Groups of the same work under several strategies, one line each.
std::string groups_header();
std::vector<std::string> groups_rows(const StudyResult& result);

/// Several lines: verdict, the figures, the fitted parameters, what is to be doubted of them, every finding, the worst
/// cases.
std::string describe(const StudyResult& result);

}  // namespace simsync
