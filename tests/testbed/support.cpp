#include "tests/testbed/support.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "hw/testbed/build.hpp"
#include "hw/testbed/names.hpp"

namespace simsync::test {
namespace {

constexpr std::uint16_t kPort = 5201;
constexpr int kSkipped = 77;

void need(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

sockaddr_in address_of(const Testbed& testbed, int host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  need(::inet_pton(AF_INET, testbed.address(host).c_str(), &address.sin_addr) == 1, "inet_pton");
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// Receives until the sender closes and writes the payload rate to `report`.
int receive(const Testbed& testbed, int host, int ready, int report) {
  testbed.enter(host);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = address_of(testbed, host);
  const int yes = 1;
  need(::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0, "setsockopt");
  need(::bind(listener, generic(address), sizeof address) == 0, "bind");
  need(::listen(listener, 1) == 0, "listen");
  need(::write(ready, "r", 1) == 1, "write");
  const int connection = ::accept(listener, nullptr, nullptr);
  need(connection >= 0, "accept");
  std::vector<char> buffer(std::size_t{1} << 18);
  need(::recv(connection, buffer.data(), 1, 0) == 1, "recv");
  const auto begin = std::chrono::steady_clock::now();
  double bytes = 0;
  for (ssize_t got = 0; (got = ::recv(connection, buffer.data(), buffer.size(), 0)) > 0;)
    bytes += static_cast<double>(got);
  const double rate = bytes / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  need(::write(report, &rate, sizeof rate) == sizeof rate, "write");
  return 0;
}

int send(const Testbed& testbed, int from, int to, Bytes bytes) {
  testbed.enter(from);
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = address_of(testbed, to);
  need(::connect(connection, generic(address), sizeof address) == 0, "connect");
  const std::vector<char> buffer(static_cast<std::size_t>(bytes.count));
  need(::send(connection, buffer.data(), buffer.size(), 0) == bytes.count, "send");
  return 0;
}

}  // namespace

pid_t start(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  need(pid >= 0, "fork");
  if (pid > 0) return pid;
  for (const int caught : {SIGINT, SIGTERM}) ::signal(caught, SIG_DFL);  // the test framework has handlers
  int status = 1;
  try {
    status = body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "in a process of the test: {}\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(status);
}

int wait_for(pid_t process) {
  int status = 0;
  need(::waitpid(process, &status, 0) == process, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool soon(const std::function<bool()>& condition) {
  for (int round = 0; round < 1000; ++round) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

bool runs(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto after_name = text.rfind(") ");
  return after_name != std::string::npos && text[after_name + 2] != 'Z' && text[after_name + 2] != 'X';
}

pid_t start_sleeper(const std::string& netns) {
  std::array<int, 2> ready{};
  need(::pipe(ready.data()) == 0, "pipe");
  const pid_t pid = start([&] {
    testbed::enter_namespace(netns);
    need(::write(ready[1], "r", 1) == 1, "write");
    while (true) ::pause();
    return 0;
  });
  ::close(ready[1]);
  char byte = 0;
  need(::read(ready[0], &byte, 1) == 1, "sleeper");
  ::close(ready[0]);
  return pid;
}

BytesPerSecond transfer(const Testbed& testbed, int from, int to, Bytes bytes) {
  std::array<int, 2> ready{};
  std::array<int, 2> report{};
  need(::pipe(ready.data()) == 0 && ::pipe(report.data()) == 0, "pipe");
  const pid_t receiver = start([&] { return receive(testbed, to, ready[1], report[1]); });
  ::close(ready[1]);
  ::close(report[1]);
  char byte = 0;
  need(::read(ready[0], &byte, 1) == 1, "receiver");
  const pid_t sender = start([&] { return send(testbed, from, to, bytes); });
  double rate = 0;
  need(::read(report[0], &rate, sizeof rate) == sizeof rate, "receiver");
  ::close(ready[0]);
  ::close(report[0]);
  need(wait_for(sender) == 0 && wait_for(receiver) == 0, "transfer");
  return BytesPerSecond{rate};
}

bool names_are_gone(const std::string& testbed) {
  if (!std::filesystem::exists(testbed::kNamesFolder)) return true;
  for (const auto& entry : std::filesystem::directory_iterator(testbed::kNamesFolder))
    if (entry.path().filename().string().starts_with(testbed + "-")) return false;
  return true;
}

std::string shared_name(const Testbed& testbed) {
  const std::string first = testbed.namespace_name(0);
  return first.substr(0, first.rfind('-'));
}

bool possible(const std::function<void()>& body) {
  const int status = wait_for(start([&] {
    try {
      body();
    } catch (const CapabilityError& error) {
      fmt::print("skipped: {}\n", error.what());
      return kSkipped;
    }
    return 0;
  }));
  return status != kSkipped;
}

}  // namespace simsync::test
