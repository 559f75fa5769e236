// How an exception reads to a user and to the shell, in this process or told by another.
#pragma once
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace simsync {

/// What standard error and the shell get.
struct Failure {
  std::string text;
  ExitCode code = ExitCode::Internal;
};

/// The failure of the exception that is being handled. To be called in a catch block.
Failure current_failure();

/// A failure of a worker process, which reads as if it had happened here.
class WorkerError : public std::runtime_error {
public:
  explicit WorkerError(const Failure& failure) : std::runtime_error(failure.text), code_(failure.code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

private:
  ExitCode code_;
};

}  // namespace simsync
