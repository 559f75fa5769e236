// fit_shares() for a program that loads Ceres when something is first fitted.
#include "base/module.hpp"
#include "validate/fit.hpp"

namespace simsync {

FitResult fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options) {
  static void* const kFit =
      symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the solver of fits"}, "simsync_fit_shares");
  FitResult out;
  reinterpret_cast<decltype(&simsync_fit_shares)>(kFit)(parameters, residuals, options, out);
  return out;
}

}  // namespace simsync
