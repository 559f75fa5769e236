// The one function that the program looks up in the module of the GPU backend.
#pragma once
#include <string>

#include "hw/profile/backend.hpp"

extern "C" {
/// What make_cuda_backend does; the caller owns the result.
simsync::Backend* simsync_make_cuda_backend(const std::string& device, const std::string& precision);
}
