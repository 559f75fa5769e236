#include "base/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

/// Beside the installed program, else where it was built.
fs::path find_module(const ModulePlace& place) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = (program.parent_path() / place.from_bin).lexically_normal();
  return !error && fs::exists(installed, error) ? installed : fs::path(place.built);
}

}  // namespace

void* symbol_of(const ModulePlace& place, const char* symbol) {
  // Lazy: the module itself is linked to be bound at once, the libraries behind it look up what is called.
  void* module = dlopen(find_module(place).c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) throw CapabilityError(fmt::format("{} cannot be loaded: {}", place.purpose, dlerror()));
  void* address = dlsym(module, symbol);
  if (address == nullptr) throw CapabilityError(fmt::format("{} cannot be used: {}", place.purpose, dlerror()));
  return address;
}

}  // namespace simsync
