// The archive of measurements that a test compares with.
#pragma once
#include <string>

namespace simsync::test {

/// A file of it. Without an archive the program has ended as skipped before any test.
std::string archived(const std::string& name);

}  // namespace simsync::test
