// Connections between the processes of a run: gRPC streaming calls that carry frames in order.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hw/run/frame.hpp"
#include "hw/run/roles.hpp"

namespace simsync {

/// Bytes of a frame as they lie in gRPC's memory, valid during the call that hands them over.
using Pieces = std::span<const std::span<const std::byte>>;

/// Text of a frame's bytes.
std::string text_of(Pieces pieces);

/// One process's end of all its connections. Each pair of processes has one connection (one channel) with a control
/// stream and some data streams; a transfer travels whole on one of them, in pieces of kPieceBytes.
class Links {
public:
  static constexpr std::size_t kPieceBytes = 1 << 20;
  struct Handlers {
    /// A frame arrived. Called by gRPC's threads, for one stream at a time.
    std::function<void(AgentId from, const FrameHeader& header, Pieces payload)> frame;
    /// A connection ended that was not closed here.
    std::function<void(AgentId peer, const std::string& why)> lost;
  };

  /// Listens on `address` (`host:port`, port 0: any). @throws CapabilityError when that is not possible.
  Links(AgentId self, const std::string& address, Handlers handlers);
  ~Links();  ///< closes
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  [[nodiscard]] int port() const;
  /// Connects to a listening peer with `data_streams` streams besides the control stream; tries for `timeout`
  /// seconds. @throws CapabilityError naming the peer.
  void connect(AgentId peer, const std::string& address, int data_streams, double timeout);
  /// Queues a control frame. Frames to one peer arrive in order. A peer that is gone is reported by Handlers::lost.
  void send(AgentId to, const FrameHeader& header, const std::string& text = {});
  /// Queues a transfer of `payload`, which must stay as it is until the receiver has it, on the data stream with the
  /// least to send: as at least so many messages of equal size, of one byte or more.
  void send_data(AgentId to, const FrameHeader& header, std::span<const std::byte> payload, int messages = 1);
  /// Ends all connections without a report; what is still on its way may be lost. No handler is called after it
  /// returns.
  void close();

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simsync
