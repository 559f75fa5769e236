#include "hw/testbed/build.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "hw/testbed/names.hpp"
#include "hw/testbed/tool.hpp"

namespace simsync::testbed {
namespace {

constexpr const char* kNic = "eth0";
constexpr const char* kUnlimited = "100gbit";  // a class of htb needs a rate; the buckets limit it

/// A namespace belongs to a thread: `body` may move, and the caller stays where it is.
void in_own_thread(const std::function<void()>& body) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

/// `ip` returns to where it was after every one it makes. An ordinary user may not return to the machine's own
/// network, hence the move to a namespace that lasts for these commands.
void make_namespaces(const std::vector<std::string>& names) {
  std::vector<std::string> commands;
  for (const std::string& name : names) commands.push_back("netns add " + name);
  in_own_thread([&] {
    if (::unshare(CLONE_NEWNET) != 0)
      throw CapabilityError(fmt::format("the testbed cannot make a network namespace: {}", std::strerror(errno)));
    run_batch("ip", "", commands);
  });
}

void set_kernel_option(const std::string& option, const std::string& value) {
  const std::string path = "/proc/sys/net/" + option;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written)
    throw CapabilityError(fmt::format("the testbed cannot write {} to {}: {}", value, path, std::strerror(error)));
}

/// Reno: every kernel has it and allows it in every namespace. Without metrics, a connection does not begin with what
/// an earlier one learned. An IPv6 address would announce itself now and then.
void set_kernel_options(const std::string& name) {
  in_own_thread([&] {
    enter_namespace(name);
    set_kernel_option("ipv4/tcp_congestion_control", "reno");
    set_kernel_option("ipv4/tcp_no_metrics_save", "1");
    if (std::filesystem::exists("/proc/sys/net/ipv6")) set_kernel_option("ipv6/conf/all/disable_ipv6", "1");
  });
}

/// Both ends are made where they belong, so that the machine's own network never sees them. No host hands down a packet
/// that the slowest link's bucket cannot take whole.
void make_switch(const std::string& testbed, const std::vector<LinkShape>& links) {
  std::vector<std::string> commands{"link add bridge0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0",
                                    "link set bridge0 up"};
  std::int64_t segment = links.front().segment.count;
  for (const LinkShape& link : links) segment = std::min(segment, link.segment.count);
  for (int host = 0; host < static_cast<int>(links.size()); ++host) {
    commands.push_back(
        fmt::format("link add host{0} mtu {1} gso_max_size {2} type veth peer name {3} mtu {1} "
                    "gso_max_size {2} netns {4}",
                    host, kMtu, segment, kNic, host_name(testbed, host)));
    commands.push_back(fmt::format("link set host{} master bridge0 up", host));
  }
  run_batch("ip", switch_name(testbed), commands);
}

void connect_host(const std::string& testbed, int host) {
  run_batch("ip", host_name(testbed, host),
            {"link set lo up", fmt::format("link set {} up", kNic),
             fmt::format("address add {}/24 dev {}", host_address(host), kNic)});
}

std::string buckets(const std::string& device, const LinkShape& link) {
  return fmt::format("qdisc add dev {} root handle 1: tbf rate {:.0f}bps burst {} peakrate {:.0f}bps mtu {} limit {}",
                     device, link.rate.value(), link.burst.count, link.peak.value(), link.peak_burst.count,
                     link.queue.count);
}

/// The queues of a port, behind its buckets: one per other host, so that nothing of one waits behind what is queued of
/// another. `end` is the address that tells them apart, `dst` in what `host` sends and `src` in what it receives.
std::vector<std::string> turns(const std::string& device, const char* end, int host, int hosts, const LinkShape& link) {
  std::vector<std::string> commands{fmt::format("qdisc add dev {} parent 1: handle 2: htb", device)};
  for (int other = 0; other < hosts; ++other) {
    if (other == host) continue;
    const std::string queue = fmt::format("2:{:x}", other + 1);
    commands.push_back(fmt::format("class add dev {} parent 2: classid {} htb rate {} burst {} cburst {} quantum {}",
                                   device, queue, kUnlimited, link.queue.count, link.queue.count,
                                   link.peak_burst.count));
    commands.push_back(fmt::format("qdisc add dev {} parent {} bfifo limit {}", device, queue, link.queue.count));
    commands.push_back(fmt::format("filter add dev {} parent 2: protocol ip u32 match ip {} {}/32 flowid {}", device,
                                   end, host_address(other), queue));
  }
  return commands;
}

std::vector<std::string> port(const std::string& device, const char* end, int host, int hosts, const LinkShape& link) {
  std::vector<std::string> commands{buckets(device, link)};
  if (link.queues == Queues::Fair) {
    const std::vector<std::string> more = turns(device, end, host, hosts, link);
    commands.insert(commands.end(), more.begin(), more.end());
  }
  return commands;
}

}  // namespace

std::string host_address(int host) {
  return fmt::format("10.177.0.{}", host + 1);
}

std::vector<std::string> namespaces_of(const std::string& testbed, int hosts) {
  std::vector<std::string> out{switch_name(testbed)};
  for (int host = 0; host < hosts; ++host) out.push_back(host_name(testbed, host));
  return out;
}

void build(const std::string& testbed, const std::vector<LinkShape>& links) {
  const std::vector<std::string> names = namespaces_of(testbed, static_cast<int>(links.size()));
  make_namespaces(names);
  for (const std::string& name : names) set_kernel_options(name);
  make_switch(testbed, links);
  std::vector<std::string> ports;
  const int hosts = static_cast<int>(links.size());
  for (int host = 0; host < hosts; ++host) {
    const LinkShape& link = links[static_cast<std::size_t>(host)];
    connect_host(testbed, host);
    run_batch("tc", host_name(testbed, host), port(kNic, "dst", host, hosts, link));
    const std::vector<std::string> towards = port(fmt::format("host{}", host), "src", host, hosts, link);
    ports.insert(ports.end(), towards.begin(), towards.end());
  }
  run_batch("tc", switch_name(testbed), ports);
}

void enter_namespace(const std::string& name) {
  const int fd = ::open(namespace_path(name).c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!entered)
    throw CapabilityError(fmt::format("cannot enter the network namespace {}: {}", name, std::strerror(error)));
}

}  // namespace simsync::testbed
