#include "cli/forward.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace simsync {
namespace {

constexpr const char* kProgram = "simsync-hw";

}  // namespace

void announce_measure(CLI::App& app, Outcome&) {
  app.add_subcommand(kMeasure, kAboutMeasure);
}

void announce_profile(CLI::App& app, Outcome&) {
  app.add_subcommand(kProfile, kAboutProfile);
}

bool is_forwarded(int argc, const char* const* argv) {
  return argc > 1 && (std::string_view(argv[1]) == kMeasure || std::string_view(argv[1]) == kProfile);
}

int forward(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / kProgram).string();
  execv(program.c_str(), argv);
  std::cerr << "error: " << argv[1] << " needs " << program << ": " << std::strerror(errno) << '\n';
  return static_cast<int>(ExitCode::Capability);
}

}  // namespace simsync
