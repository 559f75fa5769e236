#include "hw/run/frame.hpp"

#include <bit>
#include <cstring>

namespace simsync {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> out{};
  std::memcpy(out.data(), &header, kFrameHeaderBytes);
  return out;
}

FrameHeader decode(const std::array<std::byte, kFrameHeaderBytes>& bytes) {
  FrameHeader out;
  std::memcpy(&out, bytes.data(), kFrameHeaderBytes);
  return out;
}

}  // namespace simsync
