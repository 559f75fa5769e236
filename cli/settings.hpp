// `--set key=value` as typed.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace simsync {

/// Splits every text at its first '='. @throws InputError when there is none or the key is empty.
std::vector<std::pair<std::string, std::string>> parse_settings(const std::vector<std::string>& texts);

}  // namespace simsync
