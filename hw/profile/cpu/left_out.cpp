#include "base/error.hpp"
#include "hw/profile/backend.hpp"

namespace simsync {

std::unique_ptr<Backend> make_cpu_backend(const std::string&) {
  throw CapabilityError("this build cannot time layers on a CPU: oneDNN was not found (Debian package libdnnl-dev)");
}

}  // namespace simsync
