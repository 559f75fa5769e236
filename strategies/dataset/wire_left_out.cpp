// In place of load_wire.cpp where the build found no protobuf.
#include "base/error.hpp"
#include "strategies/dataset/message.hpp"

namespace simsync {
namespace {

constexpr const char* kLacking =
    "this build reads and writes no strategies of AutoDist: it was made without protobuf (Debian packages "
    "libprotobuf-dev and protobuf-compiler)";

}  // namespace

std::string to_bytes(const StrategyMessage&) {
  throw CapabilityError(kLacking);
}

StrategyMessage parse_message(const std::string&, const std::string&) {
  throw CapabilityError(kLacking);
}

}  // namespace simsync
