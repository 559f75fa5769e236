// What a user sees when a run breaks: which process, why, within how long; and nothing is left behind.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <thread>

#include "base/error.hpp"
#include "hw/run/launch.hpp"
#include "hw/run/links.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;
using Catch::Matchers::Equals;

namespace {

/// Children of a process, in the order in which it made them.
std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> out;
  for (pid_t child = 0; file >> child;) out.push_back(child);
  return out;
}

/// What `body` throws, in a process of its own, so that a test can do harm to its children and its threads end with it.
class InProcess {
public:
  template <class Body>
  explicit InProcess(Body body) {
    if (pipe(pipe_.data()) != 0) throw std::runtime_error("pipe");
    launcher_ = fork();
    if (launcher_ != 0) return;
    std::string text = "no error";
    try {
      body();
    } catch (const std::exception& e) {
      text = e.what();
    }
    if (!children_of(getpid()).empty()) text += " and children left";
    (void)!write(pipe_[1], text.data(), text.size());
    std::_Exit(0);
  }
  ~InProcess() {
    kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
  }
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  [[nodiscard]] pid_t launcher() const { return launcher_; }
  /// The process of an agent, once the run is under way.
  [[nodiscard]] pid_t agent(std::size_t which) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    return children_of(launcher_).at(which);
  }
  std::string error() {
    close(pipe_[1]);
    std::array<char, 4096> buffer{};
    const ssize_t n = read(pipe_[0], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }

private:
  std::array<int, 2> pipe_{};
  pid_t launcher_ = -1;
};

/// Whether it has ended, even if nobody has asked for its exit code yet.
bool has_ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string pid, name, state;
  return !(file >> pid >> name >> state) || state == "Z";
}

/// A run of 3 workers and a server that does not end by itself.
InProcess endless_run(int port) {
  return InProcess([port] {
    LaunchOptions options = test::loopback(port);
    options.run.iterations = 100'000;
    options.run.timeout_s = 3.0;
    launch(test::small_plan("ps", 3), options);
  });
}

}  // namespace

TEST_CASE("a worker that is killed in the middle of a step is named") {
  InProcess run = endless_run(29'701);
  kill(run.agent(1), SIGKILL);
  CHECK_THAT(run.error(), Equals("worker 1 (node 1) was ended by signal 9 (Killed)"));
}

TEST_CASE("a server that is killed is named") {
  InProcess run = endless_run(29'702);
  kill(run.agent(3), SIGKILL);
  CHECK_THAT(run.error(), Equals("server on node0:cpu0 was ended by signal 9 (Killed)"));
}

TEST_CASE("a worker that hangs is found out after the timeout") {
  InProcess run = endless_run(29'703);
  const pid_t worker = run.agent(2);
  kill(worker, SIGSTOP);
  CHECK_THAT(run.error(), ContainsSubstring("nothing happened for 3 s"));
}

TEST_CASE("an interrupted run ends its processes") {
  InProcess run = endless_run(29'704);
  (void)run.agent(0);
  kill(run.launcher(), SIGINT);
  CHECK_THAT(run.error(), Equals("stopped by Interrupt"));
}

TEST_CASE("the death of the launcher ends all agents") {
  std::vector<pid_t> agents;
  {
    InProcess run = endless_run(29'705);
    (void)run.agent(0);
    agents = children_of(run.launcher());
  }
  REQUIRE(agents.size() == 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (const pid_t agent : agents) CHECK(has_ended(agent));
}

TEST_CASE("a port that is in use is named") {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(29'706);
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  REQUIRE(bind(taken, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(taken, 1) == 0);
  CHECK_THROWS_WITH(
      launch(test::small_plan("ps", 3), test::loopback(29'706)),
      "worker 0 (node 0): cannot listen on 127.0.0.1:29706: the port is in use or the address is not ours");
  close(taken);
}

TEST_CASE("an agent that never comes is named") {
  // Agent 0 of a plan with three workers and a server, alone.
  InProcess run([] {
    AgentOptions options;
    options.address = "127.0.0.1";
    options.agent0_address = "127.0.0.1:29707";
    options.run.timeout_s = 0.5;
    run_agent(test::small_plan("ps", 3), options);
  });
  CHECK_THAT(run.error(), Equals("waited 0.5 s for all agents to register (no word from agent 1, 2, 3)"));
}

TEST_CASE("of two processes of one rank the second is not let in") {
  InProcess run([] {
    const Links::Handlers deaf{.frame = [](AgentId, const FrameHeader&, Pieces) {},
                               .lost = [](AgentId, const std::string&) {}};
    Links agent0(0, "127.0.0.1:0", deaf);
    Links first(1, "127.0.0.1:0", deaf);
    Links second(1, "127.0.0.1:0", deaf);
    const std::string address = "127.0.0.1:" + std::to_string(agent0.port());
    first.connect(0, address, 2, 5.0);
    second.connect(0, address, 2, 5.0);
  });
  CHECK_THAT(run.error(),
             ContainsSubstring("agent 1 is not let in by agent 0") && ContainsSubstring("with the same rank"));
}

TEST_CASE("a started worker that dies in a collective is named by the others") {
  // Three ranks as torchrun starts them; agent 2 ends itself while the others reduce.
  const auto agent = [](int self) {
    AgentOptions options;
    options.self = self;
    options.address = "127.0.0." + std::to_string(self + 1);
    options.agent0_address = "127.0.0.1:29709";
    options.run = {.iterations = 2000, .warm_up = 1, .timeout_s = 10.0};
    run_agent(test::small_plan("ddp", 3), options);
  };
  InProcess first([&] { agent(0); });
  InProcess second([&] { agent(1); });
  InProcess third([&] { agent(2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(third.launcher(), SIGKILL);
  CHECK_THAT(first.error(), ContainsSubstring("worker 2"));
  CHECK_THAT(second.error(), ContainsSubstring("worker 2"));
}

TEST_CASE("an agent stays until agent 0 has heard why its run ends") {
  // The test is agent 0: it never sends the addresses, and takes its time to answer.
  InProcess run([] {
    std::promise<std::string> why;
    std::atomic<bool> left{false};
    Links agent0(0, "127.0.0.1:0",
                 {.frame =
                      [&](AgentId, const FrameHeader& header, Pieces payload) {
                        if (header.kind == FrameKind::Failed) why.set_value(text_of(payload));
                      },
                  .lost = [&](AgentId, const std::string&) { left = true; }});
    AgentOptions options;
    options.self = 1;
    options.address = "127.0.0.1";
    options.agent0_address = "127.0.0.1:" + std::to_string(agent0.port());
    options.run.timeout_s = 0.5;
    std::thread agent1([&] { CHECK_THROWS(run_agent(test::small_plan("ps", 3), options)); });
    const std::string heard = why.get_future().get();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const bool too_early = left;
    agent0.send(1, {.kind = FrameKind::Heard});
    agent1.join();
    throw std::runtime_error(heard + (too_early ? ", and left" : ", and stayed"));
  });
  CHECK_THAT(run.error(), Equals("waited 0.5 s for the addresses of the others, and stayed"));
}
