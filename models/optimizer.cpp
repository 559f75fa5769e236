#include "models/optimizer.hpp"

namespace simsync {
namespace {

constexpr double kFull = 4.0;  // bytes of fp32

double states(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::Sgd:
      return 0.0;
    case Optimizer::Momentum:
      return 1.0;
    case Optimizer::Adam:
      return 2.0;
  }
  return 0.0;
}

}  // namespace

double OptimizerState::bytes(double width) const {
  if (master_weights && width < kFull) return kFull * (1.0 + states(optimizer));
  return width * states(optimizer);
}

double OptimizerState::update_bytes(double width) const {
  // The gradient is read, weights and states are read and written; of a copy also the weights that it is rounded to.
  if (master_weights && width < kFull) return 2.0 * width + 2.0 * bytes(width);
  return 3.0 * width + 2.0 * bytes(width);
}

const char* name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::Sgd:
      return "sgd";
    case Optimizer::Momentum:
      return "momentum";
    case Optimizer::Adam:
      return "adam";
  }
  return "";
}

}  // namespace simsync
