#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "hw/profile/cuda/module.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

/// Beside the installed program, else where it was built.
fs::path find_module() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = (program.parent_path() / SIMSYNC_MODULE_FROM_BIN).lexically_normal();
  return !error && fs::exists(installed, error) ? installed : fs::path(SIMSYNC_MODULE_BUILT);
}

/// Stays loaded until the program ends: the CUDA runtime cannot be unloaded.
void* load_module() {
  const fs::path path = find_module();
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw CapabilityError(fmt::format("the GPU profiler cannot be loaded: {}", dlerror()));
  return module;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const std::string& device, const std::string& precision) {
  static void* const kModule = load_module();
  const auto make = reinterpret_cast<decltype(&simsync_make_cuda_backend)>(dlsym(kModule, "simsync_make_cuda_backend"));
  if (make == nullptr) throw CapabilityError(fmt::format("the GPU profiler cannot be used: {}", dlerror()));
  return std::unique_ptr<Backend>(make(device, precision));
}

}  // namespace simsync
