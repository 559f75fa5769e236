// The end of a command that a signal asked to stop.
#pragma once
#include <string>

#include "base/error.hpp"

namespace simsync {

/// Thrown once everything that must not stay behind was put away; the program then ends as the signal would end it.
class Interrupted : public RunError {
public:
  Interrupted(const std::string& text, int signal) : RunError(text), signal_(signal) {}
  [[nodiscard]] int signal() const { return signal_; }

private:
  int signal_;
};

}  // namespace simsync
