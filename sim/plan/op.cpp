#include "sim/plan/op.hpp"

namespace simsync {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::Forward:
      return "forward";
    case Phase::Backward:
      return "backward";
    case Phase::Recompute:
      return "recompute";
    case Phase::MicroSteps:
      return "micro-steps";
    case Phase::Copy:
      return "copy";
    case Phase::Aggregate:
      return "aggregate";
    case Phase::Push:
      return "push";
    case Phase::RemoteCall:
      return "remote call";
    case Phase::Dispatch:
      return "dispatch";
    case Phase::Serve:
      return "serve";
    case Phase::Update:
      return "update";
    case Phase::Pull:
      return "pull";
    case Phase::Synchronize:
      return "synchronize";
    case Phase::SplitLayer:
      return "split layer";
    case Phase::Activations:
      return "activations";
    case Phase::Start:
      return "start";
  }
  return "?";
}

Phase phase_of(HostAction action) {
  switch (action) {
    case HostAction::Wait:
      return Phase::Start;
    case HostAction::Sum:
      return Phase::Aggregate;
    case HostAction::Apply:
      return Phase::Update;
    case HostAction::Serve:
      return Phase::Serve;
    case HostAction::Dispatch:
      return Phase::Dispatch;
    case HostAction::RemoteCall:
      return Phase::RemoteCall;
  }
  return Phase::Start;
}

double Op::bytes() const {
  switch (kind()) {
    case OpKind::Compute:
      return 0.0;
    case OpKind::HostWork:
      return host().bytes;
    case OpKind::Transfer:
      return transfer().bytes;
    case OpKind::Collective:
      return collective().bytes;
  }
  return 0.0;
}

std::int32_t Op::tensor() const {
  if (const auto* work = std::get_if<HostWork>(&body)) return work->tensor;
  const auto* moved = std::get_if<Transfer>(&body);
  return moved != nullptr ? moved->tensor : -1;
}

bool Op::concerns_server() const {
  if (const auto* work = std::get_if<HostWork>(&body)) return work->at.is_server();
  const auto* moved = std::get_if<Transfer>(&body);
  return moved != nullptr && (moved->from.is_server() || moved->to.is_server());
}

std::optional<End> Op::started_at() const {
  const End first_rank{.kind = End::Kind::Device};
  switch (kind()) {
    case OpKind::Compute:
      return first_rank;
    case OpKind::HostWork:
      return host().at;
    case OpKind::Transfer:
      return transfer().receiver_initiated ? first_rank : transfer().from;
    case OpKind::Collective:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace simsync
