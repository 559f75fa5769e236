#include "sim/problem/inputs.hpp"

#include <optional>

#include "platforms/reader.hpp"

namespace simsync {

const Model& Inputs::model(const std::string& name_or_path, const ModelParameters& parameters) {
  ModelKey key{name_or_path, parameters};
  const auto known = models_.find(key);
  if (known != models_.end()) return known->second;
  return models_.emplace(std::move(key), find_model(name_or_path, parameters)).first->second;
}

const Cluster& Inputs::cluster(const std::string& name_or_path) {
  const auto known = clusters_.find(name_or_path);
  return known != clusters_.end() ? known->second
                                  : clusters_.emplace(name_or_path, find_cluster(name_or_path)).first->second;
}

Profile Inputs::profile(const std::string& name_or_path, const ModelParameters& parameters,
                        const ProfileRequest& request) {
  std::pair key{ModelKey{name_or_path, parameters}, request};
  key.second.step_time = std::nullopt;
  auto found = profiles_.find(key);
  if (found == profiles_.end()) {
    Profile made = make_profile(model(name_or_path, parameters), key.second);
    found = profiles_.emplace(std::move(key), std::move(made)).first;
  }
  return request.step_time ? found->second.scaled_to(*request.step_time) : found->second;
}

}  // namespace simsync
