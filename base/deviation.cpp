#include "base/deviation.hpp"

namespace simsync {

Deviation read_deviation(const yaml::Node& node) {
  constexpr double kMost = 3.0;
  constexpr std::int64_t kMostRows = 1'000'000'000;
  auto fields = node.mapping();
  Deviation out;
  out.value = fields.require("deviation").number({0.0, kMost});
  out.rows = static_cast<int>(fields.require("rows").integer(1, kMostRows));
  out.source = fields.require("source").text();
  return out;
}

}  // namespace simsync
