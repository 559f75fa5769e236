#include "hw/run/started_rank.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 4> kRankAndSize{
    {{"RANK", "WORLD_SIZE"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
     {"PMI_RANK", "PMI_SIZE"},
     {"SLURM_PROCID", "SLURM_NTASKS"}}};

int number_of(const Environment& environment, const char* name, int least, int most) {
  const char* text = environment(name);
  const auto value = text == nullptr ? std::nullopt : parse_integer(text);
  if (!value || *value < least || *value > most)
    throw InputError(fmt::format("environment variable {} is {}: expected a whole number from {} to {}", name,
                                 text == nullptr ? "not set" : fmt::format("'{}'", text), least, most));
  return static_cast<int>(*value);
}

std::string first_host_of(const Environment& environment) {
  if (const char* address = environment("MASTER_ADDR")) return address;
  if (const char* nodes = environment("SLURM_STEP_NODELIST")) return first_of_nodelist(nodes);
  throw InputError("environment variable MASTER_ADDR is not set",
                   "it names the host of rank 0; with Open MPI: mpirun -x MASTER_ADDR=host ...");
}

/// IPv4 address of a host.
sockaddr_in address_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) throw CapabilityError(fmt::format("host '{}' of rank 0: {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  sockaddr_in out = *reinterpret_cast<const sockaddr_in*>(list->ai_addr);
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  return out;
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

/// The address of this host on the way to `peer`. No packet is sent.
std::string address_towards(const sockaddr_in& peer) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  const bool known = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  if (fd >= 0) close(fd);
  if (!known) throw CapabilityError("no network leads to rank 0 at " + text_of(peer));
  return text_of(own);
}

}  // namespace

std::string first_of_nodelist(const std::string& nodelist) {
  const std::size_t end = nodelist.find_first_of(",[");
  if (end == std::string::npos || nodelist[end] == ',') return nodelist.substr(0, end);
  const std::size_t last = nodelist.find_first_of("-,]", end + 1);
  return nodelist.substr(0, end) + nodelist.substr(end + 1, last == std::string::npos ? last : last - end - 1);
}

std::optional<StartedRank> started_rank(const Environment& environment) {
  constexpr int kMostProcesses = 1'000'000;
  constexpr int kLargestPort = 65535;
  for (const auto& [rank, size] : kRankAndSize) {
    if (environment(rank) == nullptr) continue;
    StartedRank out;
    out.world_size = number_of(environment, size, 1, kMostProcesses);
    out.rank = number_of(environment, rank, 0, out.world_size - 1);
    out.first_host = first_host_of(environment);
    if (environment("MASTER_PORT") != nullptr) out.port = number_of(environment, "MASTER_PORT", 1, kLargestPort);
    return out;
  }
  return std::nullopt;
}

AgentOptions agent_options(const StartedRank& started, const Plan& plan, const RunOptions& run) {
  const Roles roles(plan);
  if (roles.agents() != started.world_size)
    throw PlanError(fmt::format("{} workers and {} servers need {} processes, {} were started", plan.rank_count(),
                                plan.servers.size(), roles.agents(), started.world_size));
  const sockaddr_in first = address_of(started.first_host, started.port);
  AgentOptions out;
  out.self = started.rank;
  out.address = started.rank == 0 ? text_of(first) : address_towards(first);
  out.agent0_address = fmt::format("{}:{}", text_of(first), started.port);
  out.run = run;
  return out;
}

}  // namespace simsync
