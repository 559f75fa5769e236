// Which cases only the strategy tells apart.
#pragma once
#include <string>

#include "validate/cases.hpp"

namespace simsync {

/// Text that two cases share when they are ranked together and their questions differ in the strategy and its options
/// (`strategy.*`) at most: equal `rank_group`, model, cluster, batch, workers, all other settings (precision,
/// placement, step_time, numbers of the cluster), equal cells in the columns of `calibrate.step_time.key`, and the same
/// fitted parameters. The column that names the strategy tells strategies apart, not work: it is no part of that key,
/// and a parameter that is fitted for some strategies (the rate of their transport) does not make their work different.
/// Needs `c.row`, `c.request` and `c.rank_group`.
std::string workload_of(const Study& study, const Case& c);

/// Name and options of the strategy that is asked about.
std::string strategy_of(const PredictRequest& request);

}  // namespace simsync
