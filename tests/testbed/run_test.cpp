// Real processes on this machine's loopback addresses: every result is checked in the run, so that a run that ends
// well has synchronized well.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/error.hpp"
#include "hw/run/launch.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;

namespace {

/// Three layers of 1 ms each way, with sizes that no piece length divides.
test::LabModel small_model() {
  return {{40'004, 1e-3, 1e-3}, {4, 1e-3, 1e-3}, {3'000'000, 1e-3, 1e-3}};
}

LaunchOptions loopback(int port) {
  LaunchOptions options;
  options.run = {.iterations = 4, .warm_up = 1, .timeout_s = 10.0};
  options.port = port;
  options.address = [](int node) { return "127.0.0." + std::to_string(node + 1); };
  return options;
}

Plan plan_for(const std::string& builder, int workers, std::map<std::string, std::string> options = {}) {
  const auto lab = small_model();
  Cluster cluster = test::lab_cluster(workers, 1, {}, 2);
  cluster.collective.algorithm = "ring";  // Gloo's
  const Strategy strategy = build_strategy(builder, test::request_for(lab.model, cluster, workers, std::move(options)));
  return compile(lab.model, lab.profile, cluster, strategy);
}

}  // namespace

TEST_CASE("every builder runs for real and its results are right") {
  int port = 29'610;
  for (const std::string builder : {"ddp", "horovod", "wfbp", "all-reduce", "ps", "partitioned-ps", "ps-load-balancing",
                                    "parallax", "byteps", "p3", "bytescheduler", "tictac"}) {
    SECTION(builder) {
      const Plan plan = plan_for(builder, 3);
      const Measurement measured = launch(plan, loopback(port++));
      CHECK(measured.steps.size() == 4);
      CHECK(measured.checked > 0);
      // Six layer times of 1 ms cannot overlap each other.
      CHECK(measured.quantile(0.0) >= Seconds{0.0055});
    }
  }
}
