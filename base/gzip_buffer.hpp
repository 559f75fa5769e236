// Files that may be compressed with gzip, read piece by piece.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>

namespace simsync {

/// Reads a file through zlib, which passes on what is not compressed. An input of the command (file_log.hpp).
/// The constructor throws InputError when the file cannot be opened, and reading throws it when the file is damaged or
/// inflates to more than 250 times its size, which traces do not (they reach 10 to 50) and files that are made to
/// exhaust memory do (up to 1032, gzip's limit), or has more than 16 MiB of blanks in a row.
class GzipBuffer : public std::streambuf {
public:
  explicit GzipBuffer(const std::string& path);

protected:
  int_type underflow() override;
  /// How much of the file, as it lies on the disk, is read: 0 to 1.
  [[nodiscard]] double share_read() const;

private:
  struct File;
  void expect_sane_size() const;
  void expect_text(std::size_t count);
  std::string path_;
  std::shared_ptr<File> file_;
  std::uint64_t inflated_ = 0;
  std::size_t blanks_ = 0;  ///< read last, with nothing else between them
  std::uint64_t size_ = 0;  ///< of the file; 0 for what has none, such as a pipe
  std::array<char, 1 << 16> buffer_{};
};

}  // namespace simsync
