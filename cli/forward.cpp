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

void announce_probe(CLI::App& app, Outcome&) {
  app.add_subcommand(kProbe, kAboutProbe);
}

bool is_forwarded(int argc, const char* const* argv) {
  if (argc < 2) return false;
  const std::string_view command(argv[1]);
  return command == kMeasure || command == kProfile || command == kProbe;
}

std::string hardware_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / kProgram).string();
}

int forward(char** argv) {
  const std::string program = hardware_program();
  execv(program.c_str(), argv);
  std::cerr << "error: " << argv[1] << " needs " << program << ": " << std::strerror(errno) << '\n';
  return static_cast<int>(ExitCode::Capability);
}

}  // namespace simsync
