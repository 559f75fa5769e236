#include "hw/testbed/describe.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parse_units.hpp"

namespace simsync::testbed {
namespace {

constexpr const char* kDevice = "emulated";
/// What a request waits behind pushes on its connection at most, as runs with bounded staleness show (hw/README.md).
constexpr Seconds kSendAhead{170e-3};

/// Layer times come from the profile or from `--set step_time`: these numbers only have to be plausible.
DeviceClass emulated_device() {
  DeviceClass device;
  device.name = kDevice;
  device.peak = {{"fp32", FlopsPerSecond{10e12}}};
  device.memory_bandwidth = BytesPerSecond{500e9};
  device.memory = Bytes{std::int64_t{16} << 30};
  device.compute_efficiency = {{"fp32", 0.6}};
  device.source = "no device: a testbed's host sleeps for as long as a layer takes; plausible numbers";
  return device;
}

Bytes in_payload(Bytes frames) {
  return Bytes{std::llround(payload_share() * static_cast<double>(frames.count))};
}

LinkClass ethernet(const LinkShape& shape) {
  LinkClass link;
  link.name = "ethernet";
  link.bandwidth = shape.rate;
  link.efficiency = payload_share();
  if (shape.queues == Queues::Fair) link.service.turn = in_payload(shape.peak_burst);
  link.service.burst = in_payload(shape.burst);
  link.service.burst_at_once = in_payload(shape.peak_burst);
  link.service.burst_speed = shape.peak / shape.rate;
  link.latency = Seconds{25e-6};  // two kernels and a bridge on an idle machine; calibration measures it
  return link;
}

/// Host and device memory are one, so a copy between them costs nothing.
LinkClass memory() {
  LinkClass link;
  link.name = "memory";
  link.bandwidth = BytesPerSecond{1e15};
  return link;
}

NodeGroup host(int number, const LinkShape& link, BytesPerSecond fastest, bool server) {
  NodeGroup group;
  group.name = fmt::format("{}{}", server ? "server" : "host", number);
  if (!server) {
    group.device = kDevice;
    group.gpus = 1;
    group.fabric.pcie_link = "memory";
  }
  group.nic_link = "ethernet";
  group.nic_slowdown = fastest / link.rate;
  const long threads = ::sysconf(_SC_NPROCESSORS_ONLN);
  group.cpu.threads = static_cast<int>(std::clamp(threads, 1L, 4096L));
  group.cpu.send_ahead = kSendAhead;
  return group;
}

std::string rate_text(BytesPerSecond rate) {
  return format_number(rate.value() * 8 / 1e6) + " Mbit/s";
}

std::string queue_text(const LinkShape& link) {
  const char* which = link.queues == Queues::Fifo ? "queue" : "fair queues, one per other host, of";
  return fmt::format("{} {}", which, link.queue.count);
}

/// What a reader has to know of the links, once per rate.
std::string description(const std::vector<LinkShape>& links) {
  std::map<BytesPerSecond, const LinkShape*> rates;
  for (const LinkShape& link : links) rates.emplace(link.rate, &link);
  utsname system{};
  ::uname(&system);
  std::string out =
      fmt::format("Emulated: {} network namespaces on one machine with {} processors, Linux {}, TCP reno, MTU {}",
                  links.size(), ::sysconf(_SC_NPROCESSORS_ONLN), system.release, kMtu);
  for (const auto& [rate, link] : rates)
    out += fmt::format("; tbf {}, burst {} B at {} after {} B at once, {} B", rate_text(rate), link->burst.count,
                       rate_text(link->peak), link->peak_burst.count, queue_text(*link));
  return out;
}

/// Two testbeds of one name serve alike: what trials on one of them teach is true of the other.
/// "testbed-4-fifo-2x1gbps-500mbps-250mbps"; of nine hosts with one server "testbed-8-and-1-fair-9x250mbps".
std::string name_of_testbed(const std::vector<LinkShape>& links, int servers) {
  const int workers = static_cast<int>(links.size()) - servers;
  std::string out = fmt::format("testbed-{}", workers);
  if (servers > 0) out += fmt::format("-and-{}", servers);
  out += fmt::format("-{}", name_of(links.front().queues));
  for (std::size_t first = 0; first < links.size();) {
    std::size_t end = first;
    while (end < links.size() && links[end].rate == links[first].rate) ++end;
    const double megabits = links[first].rate.value() * 8 / 1e6;
    const bool in_gigabits = megabits >= 1000.0;
    const std::string rate = format_number(in_gigabits ? megabits / 1000.0 : megabits);
    out += end - first > 1 ? fmt::format("-{}x", end - first) : "-";
    out += rate + (in_gigabits ? "gbps" : "mbps");
    first = end;
  }
  return out;
}

}  // namespace

Cluster describe(const std::vector<LinkShape>& links, int servers) {
  const LinkShape& fastest = *std::ranges::max_element(links, {}, &LinkShape::rate);
  const int hosts = static_cast<int>(links.size());
  Cluster cluster;
  cluster.name = name_of_testbed(links, servers);
  cluster.description = description(links);
  cluster.sources = {
      "nominal: what was asked of tc tbf; the share of payload from the headers of Ethernet, IP and TCP"};
  cluster.devices = {{kDevice, emulated_device()}};
  cluster.links = {{"ethernet", ethernet(fastest)}, {"memory", memory()}};
  cluster.collective.algorithm = "ring";  // Gloo's
  for (int k = 0; k < hosts; ++k)
    cluster.groups.push_back(host(k, links[static_cast<std::size_t>(k)], fastest.rate, k >= hosts - servers));
  return cluster;
}

}  // namespace simsync::testbed
