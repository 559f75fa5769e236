// A process that mpirun, torchrun or srun has started on a host of a real cluster.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "hw/run/agent.hpp"

namespace simsync {

/// What the environment of such a process says.
struct StartedRank {
  int rank = 0;
  int world_size = 1;
  std::string first_host;  ///< name or address of rank 0's host
  int port = 29500;        ///< where rank 0 listens
};

/// Value of an environment variable; null when it is not set.
using Environment = std::function<const char*(const char* name)>;

/// Reads RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (Open MPI), PMI_RANK and _SIZE (MPICH, Intel
/// MPI) or SLURM_PROCID and SLURM_NTASKS (srun), in this order; the host of rank 0 from MASTER_ADDR, else the first of
/// SLURM_STEP_NODELIST; the port from MASTER_PORT. nullopt: nobody started it so.
/// @throws InputError for a number that is none, or when nothing names rank 0's host.
std::optional<StartedRank> started_rank(const Environment& environment);

/// `node[03-07,12],other` -> `node03`.
std::string first_of_nodelist(const std::string& nodelist);

/// The part of a run that this process has: agent `rank`. Its own address is the one from which it reaches rank 0.
/// @throws PlanError when the plan needs another number of processes; CapabilityError when the host is unknown.
AgentOptions agent_options(const StartedRank& started, const Plan& plan, const RunOptions& run);

}  // namespace simsync
