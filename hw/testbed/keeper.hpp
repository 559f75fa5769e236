// A process that outlives the owner of a testbed just long enough to remove it.
#pragma once
#include <string>
#include <vector>

namespace simsync::testbed {

/// Watches the process that made it and removes the namespaces when that process ends, however it ends. It has a
/// session of its own (Ctrl-C does not reach it), no open files, and is nobody's child (wait() does not see it).
class Keeper {
public:
  /// @throws CapabilityError when the machine cannot start it (Linux 5.3 or later is needed).
  explicit Keeper(const std::vector<std::string>& names);
  /// Ends the keeper without any removal and waits for its end. In a forked copy of the owner: does nothing.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

private:
  int owner_;        ///< process number of the maker
  int keeper_ = -1;  ///< descriptor of the keeper process
};

}  // namespace simsync::testbed
