// What travels between the processes of a run: a fixed header and bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace simsync {

enum class FrameKind : std::uint32_t {
  Register,  ///< to agent 0: text `address:port`
  Table,     ///< from agent 0: one `address:port` per line, by agent
  SetKey,    ///< to agent 0: `key\0value`
  GetKey,    ///< to agent 0: the key; answered by Value once it is set
  Value,     ///< from agent 0: `key\0value`
  Ready,     ///< to agent 0: connected to everybody
  Go,        ///< from agent 0: start of the first iteration
  Ended,     ///< an instance ended at the sender
  Begin,     ///< from agent 0: run this collective now
  Ask,       ///< to a server: send this transfer
  Data,      ///< a piece of a transfer
  Result,    ///< to agent 0: what the sender measured
  Bye,       ///< from agent 0: all results are in
  Failed,    ///< to agent 0, and from it to all: text of an error
  Heard,     ///< answers Failed
};

struct FrameHeader {
  FrameKind kind = FrameKind::Ended;
  std::int32_t op = 0;
  std::int32_t group = 0;
  std::int32_t iteration = 0;
  std::uint64_t offset = 0;  ///< Data: place of this piece in the transfer
  std::uint64_t total = 0;   ///< Data: bytes of the whole transfer
};
inline constexpr std::size_t kFrameHeaderBytes = 32;

/// Little endian, as every machine that runs this is; checked at compile time.
std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
FrameHeader decode(const std::array<std::byte, kFrameHeaderBytes>& bytes);

}  // namespace simsync
