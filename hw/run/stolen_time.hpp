// Time that this machine's processors wanted to work but did not get, because its host gave it to other machines.
#pragma once
#include <string>

namespace simsync {

/// Since the machine started, over all processors, in ticks of the kernel's clock.
struct ProcessorTicks {
  double stolen = 0.0;
  double all = 0.0;
};

/// From the text of /proc/stat; zeros when it is another text.
ProcessorTicks processor_ticks(const std::string& proc_stat);

/// Share of the processors' time that was stolen since this object was made. 0 on machines that have no host, or do not
/// tell.
class StolenTime {
public:
  StolenTime();
  [[nodiscard]] double share() const;

private:
  ProcessorTicks before_;
};

/// What to tell a user of such a share: a note, or nothing when it is too small to show in what was measured.
std::string note_of_stolen_time(double share);

}  // namespace simsync
