#include "hw/testbed/testbed.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <sstream>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "hw/testbed/build.hpp"
#include "hw/testbed/describe.hpp"
#include "hw/testbed/keeper.hpp"
#include "hw/testbed/names.hpp"
#include "hw/testbed/removal.hpp"
#include "hw/testbed/rights.hpp"

namespace simsync {
namespace {

constexpr BytesPerSecond kLeastRate{1e6 / 8};
constexpr BytesPerSecond kMostRate{100e9 / 8};

void check_rate(BytesPerSecond rate) {
  if (!(rate >= kLeastRate && rate <= kMostRate))
    throw InputError(
        fmt::format("a testbed's rate is {} bit/s: expected 1Mbps to 100Gbps", format_number(rate.value() * 8)));
}

std::vector<testbed::LinkShape> links_of(const TestbedRequest& request) {
  // Without bounds on each, the sum could overflow.
  const bool counts = request.hosts >= 1 && request.hosts <= kMaxTestbedHosts && request.server_hosts >= 0 &&
                      request.server_hosts <= kMaxTestbedHosts &&
                      request.hosts + request.server_hosts <= kMaxTestbedHosts;
  if (!counts)
    throw InputError(
        fmt::format("a testbed of {} workers and {} servers: expected at least one worker and at most {} hosts",
                    request.hosts, request.server_hosts, kMaxTestbedHosts));
  const int hosts = request.hosts + request.server_hosts;
  if (request.rates.empty()) throw InputError("a testbed needs a rate, such as 1Gbps");
  if (request.rates.size() > static_cast<std::size_t>(hosts))
    throw InputError(fmt::format("{} rates for the {} hosts of a testbed", request.rates.size(), hosts));
  std::vector<testbed::LinkShape> links;
  for (std::size_t k = 0; k < static_cast<std::size_t>(hosts); ++k) {
    const BytesPerSecond rate = request.rates[std::min(k, request.rates.size() - 1)];
    check_rate(rate);
    links.push_back(testbed::shape_of(rate, request.queues));
  }
  return links;
}

/// Several testbeds of one process differ by it.
int next_number() {
  static std::atomic<int> made{0};
  return made++;
}

}  // namespace

std::vector<BytesPerSecond> parse_rates(const std::string& text) {
  std::vector<BytesPerSecond> rates;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const auto rate = parse_bandwidth(part);
    if (!rate) throw InputError(fmt::format("'{}' is not a rate: expected a number and a unit, such as 1Gbps", part));
    check_rate(*rate);
    rates.push_back(*rate);
  }
  return rates;
}

testbed::Queues parse_queues(const std::string& text) {
  for (const testbed::Queues queues : {testbed::Queues::Fifo, testbed::Queues::Fair})
    if (text == testbed::name_of(queues)) return queues;
  throw InputError(fmt::format("'{}' is not a way of queueing: expected fifo or fair", text));
}

struct Testbed::State {
  State(std::vector<testbed::LinkShape> given, int server_count)
      : links(std::move(given)), servers(server_count), owner(::getpid()) {}
  /// A child that was forked with a copy of this leaves everything as it is.
  ~State() {
    if (::getpid() == owner) testbed::remove_namespaces(namespaces);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] int checked(int host) const {
    SIMSYNC_ASSERT(host >= 0 && static_cast<std::size_t>(host) < links.size());
    return host;
  }

  std::vector<testbed::LinkShape> links;
  int servers;
  pid_t owner;
  std::string name;
  std::vector<std::string> namespaces;
  std::optional<testbed::Keeper> keeper;
};

Testbed::Testbed(const TestbedRequest& request)
    : state_(std::make_unique<State>(links_of(request), request.server_hosts)) {
  const int count = hosts();
  state_->name = testbed::testbed_name(testbed::this_process(), next_number());
  testbed::sweep_processes();
  testbed::gain_rights(state_->name);
  testbed::sweep_names();
  state_->namespaces = testbed::namespaces_of(state_->name, count);
  state_->keeper.emplace(state_->namespaces);
  testbed::build(state_->name, state_->links);
}

Testbed::~Testbed() = default;

int Testbed::hosts() const {
  return static_cast<int>(state_->links.size());
}

std::string Testbed::address(int host) const {
  return testbed::host_address(state_->checked(host));
}

std::string Testbed::namespace_name(int host) const {
  return testbed::host_name(state_->name, state_->checked(host));
}

void Testbed::enter(int host) const {
  testbed::enter_namespace(namespace_name(host));
}

Cluster described_testbed(const TestbedRequest& request) {
  return testbed::describe(links_of(request), request.server_hosts);
}

Cluster Testbed::cluster() const {
  return testbed::describe(state_->links, state_->servers);
}

}  // namespace simsync
