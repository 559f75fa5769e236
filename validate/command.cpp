#include "validate/command.hpp"

#include <algorithm>

namespace simsync {
namespace {

bool is_plain(char c) {
  constexpr std::string_view kPlain = "-_./:=,@%+";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlain.find(c) != std::string_view::npos;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace

std::vector<std::string> predict_arguments(const PredictRequest& request) {
  std::vector<std::string> out{"--model",    request.model,    "--cluster", request.cluster,
                               "--strategy", request.strategy, "--workers", std::to_string(request.workers)};
  if (request.batch) out.insert(out.end(), {"--batch", std::to_string(*request.batch)});
  if (!request.calibration.empty()) out.insert(out.end(), {"--calibration", request.calibration});
  for (const auto& [key, value] : request.settings) out.insert(out.end(), {"--set", key + "=" + value});
  return out;
}

std::string command_of(const PredictRequest& request) {
  std::string out = "simsync predict";
  for (const auto& argument : predict_arguments(request)) {
    out += ' ';
    out += quoted(argument);
  }
  return out;
}

}  // namespace simsync
