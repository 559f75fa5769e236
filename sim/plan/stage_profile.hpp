// Layer times of what one rank of a stage computes.
#pragma once
#include "models/profile.hpp"
#include "strategies/stage_model.hpp"

namespace simsync {

/// The times of the whole model's layers, each times what an estimate says of the rank's part over what it says of the
/// whole (Profile::roofline), of matrix products by product_time. The update takes its share of the bytes. A layer that
/// stands for what is received takes no time.
Profile stage_profile(const Profile& whole, const Model& model, const StageModel& stage);

}  // namespace simsync
