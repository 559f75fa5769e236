// Files that many questions of one command share, read once.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "models/model.hpp"
#include "models/profile.hpp"
#include "models/reader.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

/// Keeps what names stand for: what a file says when it is first asked for holds as long as this lives. Not for use by
/// two threads at a time.
class Inputs {
public:
  /// As given to --model and `--set model.X=`. @throws InputError as find_model() does.
  const Model& model(const std::string& name_or_path, const ModelParameters& parameters = {});
  /// As given to --cluster. @throws InputError as find_cluster() does.
  const Cluster& cluster(const std::string& name_or_path);
  /// From now on `name` stands for this cluster.
  void put(const std::string& name, Cluster cluster) { clusters_.insert_or_assign(name, std::move(cluster)); }
  /// make_profile() of `model(name_or_path, parameters)`. @throws InputError as make_profile() does.
  Profile profile(const std::string& name_or_path, const ModelParameters& parameters, const ProfileRequest& request);

private:
  using ModelKey = std::pair<std::string, ModelParameters>;
  std::map<ModelKey, Model> models_;
  std::map<std::string, Cluster> clusters_;
  /// By model and by what was asked but for `step_time`, which only scales.
  std::map<std::pair<ModelKey, ProfileRequest>, Profile> profiles_;
};

}  // namespace simsync
