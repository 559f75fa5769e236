// What mpirun, torchrun and srun tell the processes that they start.
#include "hw/run/started_rank.hpp"

#include <map>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

namespace {

std::optional<StartedRank> started_with(const std::map<std::string, std::string>& variables) {
  return started_rank([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("torchrun, Open MPI, MPICH and srun say who a process is", "[run]") {
  CHECK_FALSE(started_with({{"PATH", "/bin"}}));
  const auto torch = started_with({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1234"}});
  REQUIRE(torch);
  CHECK(torch->rank == 3);
  CHECK(torch->world_size == 4);
  CHECK(torch->first_host == "a");
  CHECK(torch->port == 1234);
  const auto mpi = started_with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"MASTER_ADDR", "b"}});
  REQUIRE(mpi);
  CHECK(mpi->rank == 1);
  CHECK(mpi->port == 29500);
  REQUIRE(started_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "b"}}));
  const auto slurm = started_with({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_NODELIST", "n[07-08]"}});
  REQUIRE(slurm);
  CHECK(slurm->rank == 5);
  CHECK(slurm->first_host == "n07");
  CHECK_THROWS_AS(started_with({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}), InputError);
  CHECK_THROWS_AS(started_with({{"RANK", "0"}, {"WORLD_SIZE", "4"}}), InputError);
}

TEST_CASE("the first host of a Slurm list", "[run]") {
  CHECK(first_of_nodelist("node3") == "node3");
  CHECK(first_of_nodelist("node3,node5") == "node3");
  CHECK(first_of_nodelist("node[03-07,12],other") == "node03");
  CHECK(first_of_nodelist("rack1-node[9]") == "rack1-node9");
}

TEST_CASE("every process of a run knows its own address and that of rank 0", "[run]") {
  const Plan plan = test::small_plan("ps", 2);  // two workers and a server
  const AgentOptions server = agent_options({2, 3, "127.0.0.1", 4321}, plan, {});
  CHECK(server.self == 2);
  CHECK(server.address == "127.0.0.1");
  CHECK(server.agent0_address == "127.0.0.1:4321");
  CHECK_THROWS_AS(agent_options({0, 2, "127.0.0.1", 4321}, plan, {}), PlanError);
}
