// What a plan runner needs of one GPU: a stream for compute, one for communication, and ends that can be waited for.
#pragma once
#include <memory>
#include <optional>

#include "hw/cuda/device.hpp"
#include "hw/cuda/nccl_communicator.hpp"
#include "hw/cuda/spin.hpp"

namespace simsync::cuda {

/// A piece of work that was started. Copies share the same piece.
class Completion {
public:
  [[nodiscard]] bool done() const { return span_->end.done(); }
  void wait() const { span_->end.wait(); }
  /// Polls until the end or until `timeout` has passed; false: it has not ended yet.
  [[nodiscard]] bool wait_for(Seconds timeout) const;
  /// Time on the device from start to end; the work must be done.
  [[nodiscard]] Seconds duration() const { return span_->end.since(span_->start); }
  /// Time on the device from the start of `origin` to the start of this work; both must be done.
  [[nodiscard]] Seconds started_after(const Completion& origin) const {
    return span_->start.since(origin.span_->start);
  }

private:
  friend class DeviceRuntime;
  struct Span {
    Event start;
    Event end;
  };
  Completion() : span_(std::make_shared<Span>()) {}
  std::shared_ptr<Span> span_;
};

/// One GPU of one rank. Work on one stream runs in the order of the calls; the two streams run beside each other
/// unless `compute_after` or `communicate_after` orders them. To be used by one thread.
class DeviceRuntime {
public:
  /// Takes GPU `index` and calibrates its compute kernel. @throws CapabilityError when there is none.
  explicit DeviceRuntime(int index = 0);

  /// Joins the group of `id`; blocks until all ranks have come. Collectives need it.
  void join(const NcclId& id, int rank, int size);

  /// Keeps the compute stream busy for `length`.
  Completion run_compute(Seconds length);
  /// Later compute waits for `work`; the calling thread does not.
  void compute_after(const Completion& work);

  // Collectives on the communication stream, `floats` as in NcclCommunicator; @throws PlanError without a group.
  Completion all_reduce(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats);
  Completion reduce_scatter(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats);
  Completion all_gather(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats);
  Completion send(const DeviceBuffer& in, std::size_t floats, int peer);
  Completion receive(DeviceBuffer& out, std::size_t floats, int peer);

  // Copies on the communication stream, from the beginning of one buffer to the beginning of the other.
  Completion copy_to_host(const DeviceBuffer& from, PinnedBuffer& to, Bytes size);
  Completion copy_to_device(const PinnedBuffer& from, DeviceBuffer& to, Bytes size);
  /// Later collectives and copies wait for `work`; the calling thread does not.
  void communicate_after(const Completion& work);

  /// Blocks until both streams are empty.
  void wait() const;
  [[nodiscard]] const DeviceInfo& device() const { return device_; }
  [[nodiscard]] const SpinCalibration& calibration() const { return calibration_; }
  /// @throws PlanError before `join`.
  NcclCommunicator& group();

private:
  template <class Work>
  Completion timed(const Stream& stream, const Work& work);

  DeviceInfo device_;
  Stream compute_;
  Stream communication_;
  SpinCalibration calibration_;
  std::optional<NcclCommunicator> group_;
};

}  // namespace simsync::cuda
