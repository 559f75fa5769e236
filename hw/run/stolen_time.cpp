#include "hw/run/stolen_time.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace simsync {
namespace {

ProcessorTicks now() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return processor_ticks(line);
}

}  // namespace

ProcessorTicks processor_ticks(const std::string& proc_stat) {
  // cpu user nice system idle iowait irq softirq steal, then guests, which are part of user: proc(5).
  constexpr int kSteal = 7;
  std::istringstream text(proc_stat);
  std::string cpu;
  text >> cpu;
  if (cpu != "cpu") return {};
  ProcessorTicks out;
  double ticks = 0.0;
  for (int field = 0; field <= kSteal; ++field) {
    if (!(text >> ticks)) return {};
    out.all += ticks;
    if (field == kSteal) out.stolen = ticks;
  }
  return out;
}

StolenTime::StolenTime() : before_(now()) {}

double StolenTime::share() const {
  const ProcessorTicks after = now();
  return after.all > before_.all ? (after.stolen - before_.stolen) / (after.all - before_.all) : 0.0;
}

std::string note_of_stolen_time(double share) {
  constexpr double kShows = 0.03;
  if (share <= kShows) return {};
  return fmt::format(
      "note: this machine's host gave {:.0f} % of its processors' time to other machines meanwhile: what was measured "
      "took longer",
      100.0 * share);
}

}  // namespace simsync
