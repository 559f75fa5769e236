// `simsync`: what is answered by simulation. Commands that touch hardware are handed to `simsync-hw`.
#include "cli/forward.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  using namespace simsync;
  if (is_forwarded(argc, argv)) return forward(argv);
  return run_program(
      argc, argv, "how should this model be synchronized on this cluster, how fast will it run, and why?",
      {setup_predict, setup_sweep, setup_search, setup_rank, setup_dataset, setup_compare, announce_measure,
       setup_validate, announce_profile, announce_probe, setup_calibrate, setup_import, setup_list});
}
