#include "sim/problem/single_devices.hpp"

#include <map>

#include "sim/problem/request_cluster.hpp"

namespace simsync {

double single_devices(const Problem& problem) {
  const Profile& profile = problem.profile;
  ProfileRequest asked{.device = profile.device, .precision = profile.precision, .batch = profile.batch};
  std::map<std::string, double> speeds{{profile.device, 1.0}};
  double sum = 0.0;
  for (const Place& place : problem.plan.ranks) {
    const std::string& device = problem.cluster.group_of(place.node).device;
    auto speed = speeds.find(device);
    if (speed == speeds.end()) {
      const Seconds first = detail::estimated_step(problem.cluster, problem.model, asked);
      ProfileRequest other = asked;
      other.device = device;
      speed = speeds.emplace(device, first / detail::estimated_step(problem.cluster, problem.model, other)).first;
    }
    sum += speed->second;
  }
  return sum;
}

double scaling_efficiency(const Problem& problem, double throughput) {
  const double alone = static_cast<double>(problem.samples()) / problem.profile.step().value();
  return throughput / (alone * single_devices(problem));
}

}  // namespace simsync
