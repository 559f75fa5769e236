// The only file that names a Catch2 header, so that version 2 and 3 both work.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#define CATCH_CONFIG_ENABLE_BENCHMARKING_NEVER
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
