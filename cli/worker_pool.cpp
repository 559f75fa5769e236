#include "cli/worker_pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"

namespace simsync {
namespace {

struct Child {
  pid_t pid = -1;
  int pipe = -1;
};

void write_all(int fd, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n <= 0) ::_exit(static_cast<int>(ExitCode::Internal));
    at += static_cast<std::size_t>(n);
  }
}

/// A message is its length (eight hexadecimal digits) and its text.
std::string framed(const std::string& text) {
  std::array<char, 9> length{};
  std::snprintf(length.data(), length.size(), "%08x", static_cast<unsigned>(text.size()));
  return std::string(length.data(), 8) + text;
}

bool read_exactly(int fd, std::string& into, std::size_t size) {
  into.resize(size);
  std::size_t at = 0;
  while (at < size) {
    const ssize_t n = ::read(fd, into.data() + at, size - at);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

[[noreturn]] void child_main(int fd, std::size_t first, std::size_t count, std::size_t stride,
                             const std::function<std::string(std::size_t)>& work) {
  for (std::size_t i = first; i < count; i += stride) {
    std::string text;
    try {
      text = "=" + work(i);
    } catch (const std::exception& e) {
      text = std::string("?") + e.what();
    }
    write_all(fd, framed(text));
    if (text.front() == '?') break;
  }
  ::close(fd);
  ::_exit(0);  // the parent's buffers and handlers are not ours
}

}  // namespace

void run_in_processes(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                      const std::function<void(std::size_t, const std::string&)>& done) {
  const std::size_t processes = std::min<std::size_t>(static_cast<std::size_t>(jobs), count);
  if (processes <= 1) {
    for (std::size_t i = 0; i < count; ++i) done(i, work(i));
    return;
  }
  std::cout.flush();
  std::vector<Child> children;
  for (std::size_t c = 0; c < processes; ++c) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw CapabilityError("cannot open a pipe to a worker process");
    const pid_t pid = ::fork();
    if (pid < 0) throw CapabilityError("cannot start a worker process");
    if (pid == 0) {
      ::close(ends[0]);
      for (const Child& other : children) ::close(other.pipe);
      child_main(ends[1], c, count, processes, work);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  // Child c answers i = c, c + processes, ...; reading in the order of i needs no buffer here.
  std::string failure;
  for (std::size_t i = 0; i < count && failure.empty(); ++i) {
    std::string length, text;
    const int fd = children[i % processes].pipe;
    if (!read_exactly(fd, length, 8) || !read_exactly(fd, text, std::stoul(length, nullptr, 16))) {
      failure = "a worker process ended early";
    } else if (text.front() == '?') {
      failure = text.substr(1);
    } else {
      done(i, text.substr(1));
    }
  }
  for (const Child& child : children) {
    ::close(child.pipe);
    ::waitpid(child.pid, nullptr, 0);
  }
  if (!failure.empty())
    throw InputError(
        Diagnostic{.origin = {}, .message = failure, .key = {}, .source_line = {}, .note = {}, .help = {}});
}

RowFile::RowFile(const std::string& path, const std::string& header, bool resume)
    : path_(path), standard_output_(path == "-") {
  if (standard_output_) {
    append(header);
    return;
  }
  std::string kept = header + "\n";
  if (resume && std::filesystem::exists(path)) {
    std::string text = read_file(path);
    text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
    if (!text.starts_with(kept)) throw InputError("--resume: " + path + " has another header");
    rows_found_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1;
    kept = text;
  }
  write_file(path, kept);
  file_.open(path, std::ios::binary | std::ios::app);
}

void RowFile::append(const std::string& row) {
  std::ostream& out = standard_output_ ? static_cast<std::ostream&>(std::cout) : file_;
  out << row << '\n' << std::flush;
  if (!out) throw InputError(path_ + ": cannot be written");
}

}  // namespace simsync
