#include "models/time_error.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

namespace simsync {
namespace {

TimeErrors read(const yaml::Document& document) {
  TimeErrors out;
  {
    auto top = document.root().mapping();
    (void)top.require("schema").choice({"simsync/time-errors/v1"});
    out.estimate_fp32 = read_spread(top.require("estimate_fp32"));
    out.estimate_matrix = read_spread(top.require("estimate_matrix"));
    out.other_batch = read_spread(top.require("other_batch"));
    out.layer_times = read_spread(top.require("layer_times"));
    out.step_time = read_spread(top.require("step_time"));
  }
  document.finish();
  return out;
}

}  // namespace

TimeErrors parse_time_errors(const std::string& text, const std::string& file) {
  return read(yaml::Document::parse(text, file));
}

const TimeErrors& time_errors() {
  static const TimeErrors kErrors = read(yaml::Document::load(data_folder("models") + "/time_errors.yaml"));
  return kErrors;
}

const Spread& time_error(const Profile& profile) {
  const TimeErrors& errors = time_errors();
  switch (profile.basis) {
    case TimeBasis::Estimate:
      return profile.precision == "fp32" ? errors.estimate_fp32 : errors.estimate_matrix;
    case TimeBasis::OtherBatch:
      return errors.other_batch;
    case TimeBasis::LayerTimes:
      return profile.steps.size() > 1 ? errors.step_time : errors.layer_times;
    case TimeBasis::StepTime:
      return errors.step_time;
  }
  SIMSYNC_ASSERT(false);
  return errors.step_time;
}

}  // namespace simsync
