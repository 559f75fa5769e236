// Messages on the wire, by a module that is loaded when one is first read or written.
#include "base/error.hpp"
#include "base/module.hpp"
#include "strategies/dataset/message.hpp"

namespace simsync {
namespace {

void* function(const char* symbol) {
  return symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the reader of AutoDist's strategies"}, symbol);
}

}  // namespace

std::string to_bytes(const StrategyMessage& message) {
  static void* const kWrite = function("simsync_message_to_bytes");
  std::string out;
  reinterpret_cast<decltype(&simsync_message_to_bytes)>(kWrite)(message, out);
  return out;
}

StrategyMessage parse_message(const std::string& bytes, const std::string& file) {
  static void* const kRead = function("simsync_parse_message");
  StrategyMessage out;
  if (!reinterpret_cast<decltype(&simsync_parse_message)>(kRead)(bytes, out))
    throw InputError(Diagnostic{.origin = {file, 0, 0},
                                .message = "not a strategy of AutoDist: expected its binary message",
                                .key = {},
                                .source_line = {},
                                .note = {},
                                .help = {}});
  return out;
}

}  // namespace simsync
