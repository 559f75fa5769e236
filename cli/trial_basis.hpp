// What trials and predictions rest on, so that a correction is used where its trials were predicted alike.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sim/problem/problem.hpp"
#include "strategies/search/correction.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {

/// Options of builders, and their values for what this program's own runner does, whatever the framework that a builder
/// is named for: its servers are processes of their own with one thread for a sum or an update, and hold nothing back
/// until the backward pass has ended.
const std::map<std::string, std::string>& habits_of_runner();
/// What its hosts do: they wait for as long as a GPU computes, so that nothing slows down beside it.
inline constexpr std::pair<const char*, const char*> kIdleHosts{"collective.interference", "0"};

/// Of trials that answer the request. @throws InputError for a calibration that cannot be read.
TrialBasis basis_of(const PredictRequest& request, const std::string& runner = {});

/// The same question of what the runner does that the correction's trials were run by, where it is about their cluster;
/// settings that the request has stay.
PredictRequest as_learned(const SavedCorrection& correction, PredictRequest request, Inputs& inputs);

/// In what the prediction differs from those of the correction's trials, a sentence each. Options of the strategy
/// itself and of the replay do not count, nor do `1s` and `1000ms`. Nothing: it rests on the same.
std::vector<std::string> differences(const SavedCorrection& correction, const PredictRequest& request,
                                     const Problem& problem);

}  // namespace simsync
