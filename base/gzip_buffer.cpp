#include "base/gzip_buffer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/file_log.hpp"

namespace simsync {

struct GzipBuffer::File {
  explicit File(const std::string& path) : handle(gzopen(path.c_str(), "rb")) {}
  ~File() {
    if (handle != nullptr) gzclose(handle);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  gzFile handle;
};

GzipBuffer::GzipBuffer(const std::string& path) : path_(path), file_(std::make_shared<File>(path)) {
  if (std::filesystem::is_directory(path)) throw InputError(fmt::format("{} is a folder", path));
  if (file_->handle == nullptr) throw InputError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  if (std::filesystem::is_regular_file(path)) size_ = std::filesystem::file_size(path);
  if (FileLog* log = FileLog::current()) log->add_input(path);
}

GzipBuffer::int_type GzipBuffer::underflow() {
  const int count = gzread(file_->handle, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* why = gzerror(file_->handle, &code);
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
    throw InputError(fmt::format("cannot read {}: {}", path_, code == Z_ERRNO ? std::strerror(errno) : why));
  if (count == 0) return traits_type::eof();
  inflated_ += static_cast<std::uint64_t>(count);
  expect_sane_size();
  expect_text(static_cast<std::size_t>(count));
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(*gptr());
}

/// Readers of JSON keep the blanks between two tokens.
void GzipBuffer::expect_text(std::size_t count) {
  constexpr std::size_t kMost = 16U << 20U;
  const char* const begin = buffer_.data();
  const bool blank = std::all_of(begin, begin + count, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  blanks_ = blank ? blanks_ + count : 0;
  if (blanks_ > kMost) throw InputError(fmt::format("cannot read {}: more than 16 MiB of blanks in a row", path_));
}

double GzipBuffer::share_read() const {
  return size_ == 0 ? 0.0 : static_cast<double>(gzoffset(file_->handle)) / static_cast<double>(size_);
}

void GzipBuffer::expect_sane_size() const {
  constexpr std::uint64_t kAnyRatio = 64U << 20U;  // bytes that are no harm, however small the file
  constexpr std::uint64_t kMostRatio = 250;
  if (inflated_ <= kAnyRatio) return;
  const auto compressed = static_cast<std::uint64_t>(gzoffset(file_->handle));
  if (inflated_ > kMostRatio * compressed)
    throw InputError(fmt::format("cannot read {}: it inflates to more than {} times its size", path_, kMostRatio));
}

}  // namespace simsync
