// Parts of the program that are loaded when they are needed, because what they link is not everywhere.
#pragma once
#include <string>

namespace simsync {

/// Where a module lies.
struct ModulePlace {
  std::string from_bin;  ///< once installed: from the folder of the program
  std::string built;     ///< where the build put it
  std::string purpose;   ///< for messages: `the GPU profiler`
};

/// Address of `symbol` in the module, which stays loaded until the program ends.
/// @throws CapabilityError when it cannot be loaded or has no such symbol.
void* symbol_of(const ModulePlace& place, const char* symbol);

}  // namespace simsync
