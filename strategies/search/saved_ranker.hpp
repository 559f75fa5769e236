// A ranker as a file: what it is, what it sees, what it has learned, and from what.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync {

struct SavedRanker {
  RankerKind kind = RankerKind::Linear;
  std::set<std::string> models;  ///< names of what it has ever learned from, however little that counts now
  std::set<std::string> clusters;
  std::int64_t trials = 0;
  TransferSource learned;
};

/// As JSON that ends with a line end.
std::string to_json(const SavedRanker& saved);
/// `file`: its name in messages. @throws InputError for what is no such file, for a ranker that this program does not
/// know, and for features of another schema; CapabilityError for one that this build cannot use.
SavedRanker read_ranker(const std::string& text, const std::string& file);

}  // namespace simsync
