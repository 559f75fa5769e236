// `simsync-hw`: what runs on processes, CPUs and GPUs. Knows no simulator, so a node of a cluster builds it alone.
#include "cli/program.hpp"

int main(int argc, char** argv) {
  using namespace simsync;
  return run_program(argc, argv, "runs strategies and layers on real hardware and times them",
                     {setup_measure, setup_profile, setup_probe});
}
