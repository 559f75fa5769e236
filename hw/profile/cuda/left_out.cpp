#include "base/error.hpp"
#include "hw/profile/backend.hpp"

namespace simsync {

std::unique_ptr<Backend> make_cuda_backend(const std::string&, const std::string&) {
  throw CapabilityError("this build cannot time layers on a GPU: CUDA, NCCL or cuDNN was not found");
}

}  // namespace simsync
