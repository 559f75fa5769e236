#include "sim/problem/inputs.hpp"

#include <optional>

#include "models/reader.hpp"
#include "platforms/reader.hpp"

namespace simsync {

const Model& Inputs::model(const std::string& name_or_path) {
  const auto known = models_.find(name_or_path);
  return known != models_.end() ? known->second : models_.emplace(name_or_path, find_model(name_or_path)).first->second;
}

const Cluster& Inputs::cluster(const std::string& name_or_path) {
  const auto known = clusters_.find(name_or_path);
  return known != clusters_.end() ? known->second
                                  : clusters_.emplace(name_or_path, find_cluster(name_or_path)).first->second;
}

Profile Inputs::profile(const std::string& name_or_path, const ProfileRequest& request) {
  std::pair key{name_or_path, request};
  key.second.step_time = std::nullopt;
  auto found = profiles_.find(key);
  if (found == profiles_.end()) {
    Profile made = make_profile(model(name_or_path), key.second);
    found = profiles_.emplace(std::move(key), std::move(made)).first;
  }
  return request.step_time ? found->second.scaled_to(*request.step_time) : found->second;
}

}  // namespace simsync
