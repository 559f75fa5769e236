#include "base/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <streambuf>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace simsync {
namespace fs = std::filesystem;

namespace {

/// Of the temporary file that has a name; the handler of a signal may ask at any time.
std::atomic<const char*> unfinished{nullptr};
static_assert(std::atomic<const char*>::is_always_lock_free);

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError(Diagnostic{.origin = {path, 0, 0},
                              .message = "cannot be written: " + why,
                              .key = {},
                              .source_line = {},
                              .note = {},
                              .help = {}});
}

[[noreturn]] void refuse(const std::string& path, int error) {
  refuse(path, std::generic_category().message(error));
}

/// @return 0 or the system's reason.
int write_all(int file, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Puts a stream into an open file and remembers why that failed.
class FileBuffer : public std::streambuf {
public:
  explicit FileBuffer(int file) : file_(file) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  [[nodiscard]] int error() const { return error_; }

protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }
  int sync() override {
    if (error_ == 0) error_ = write_all(file_, pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }

private:
  int file_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_{};
};

std::string folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

bool in_proc(const std::string& path) {
  std::error_code error;
  return fs::canonical(folder_of(path), error).string().starts_with("/proc/");
}

/// No signal is delivered while it lives: a file that is being moved has a name of its own for a moment.
class SignalsHeld {
public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

private:
  sigset_t before_{};
};

constexpr std::string_view kUnfinished = ".part";

/// A name beside `target` that nobody uses.
std::string name_beside(const std::string& target) {
  static std::atomic<unsigned> made{0};
  const fs::path path(target);
  return (path.parent_path() / fmt::format(".{}.{}-{}{}", path.filename().string(), ::getpid(), made++, kUnfinished))
      .string();
}

/// The process that made a file of name_beside(), or nothing when the name is not of that form.
std::optional<pid_t> maker_of(const std::string& name) {
  if (!name.starts_with('.') || !name.ends_with(kUnfinished)) return std::nullopt;
  const std::string stem = name.substr(0, name.size() - kUnfinished.size());
  const std::size_t dash = stem.find_last_not_of("0123456789");
  if (dash == std::string::npos || dash + 1 == stem.size() || stem[dash] != '-') return std::nullopt;
  const std::size_t dot = stem.find_last_not_of("0123456789", dash - 1);
  if (dot == std::string::npos || dot == 0 || stem[dot] != '.') return std::nullopt;
  pid_t out = 0;
  const char* const end = stem.data() + dash;
  const auto read = std::from_chars(stem.data() + dot + 1, end, out);
  return read.ec == std::errc() && read.ptr == end ? std::optional(out) : std::nullopt;
}

}  // namespace

std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::string target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(target, error) && !in_proc(target); ++i) {
    const fs::path link = fs::read_symlink(target, error);
    target = link.is_absolute() ? link.string() : (fs::path(target).parent_path() / link).string();
  }
  return target;
}

bool is_written_in_place(const std::string& path) {
  const std::string target = target_of(path);
  std::error_code error;
  if (fs::is_directory(target, error)) refuse(path, "it is a folder");
  return fs::exists(target, error) && (in_proc(target) || !fs::is_regular_file(target, error));
}

struct Replacement::State {
  explicit State(const std::string& asked)
      : path(asked), target(target_of(asked)), in_place(is_written_in_place(asked)) {
    if (in_place) {
      file = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    } else {
      open_beside();
    }
    if (file < 0) refuse(path, errno);
    buffer.emplace(file);
    stream.emplace(&*buffer);
  }
  ~State() {
    if (file >= 0) ::close(file);
    if (!name.empty()) forget_name(true);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void open_beside() {
    struct stat old {};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    if (!replaces && errno != ENOENT) refuse(path, errno);
    if (replaces && ::access(target.c_str(), W_OK) != 0) refuse(path, errno);
    constexpr mode_t kMode = 0666;
    file = ::access("/proc/self/fd", X_OK) == 0
               ? ::open(folder_of(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode)
               : -1;
    const bool unsupported = file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT);
    if (unsupported) {
      const SignalsHeld held;
      name = name_beside(target);
      file = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
      if (file < 0) name.clear();
      if (file >= 0) unfinished = name.c_str();
    }
    if (file < 0 || !replaces) return;
    // The owner first: a change of it clears bits of the mode. Who may not give files away keeps the file.
    [[maybe_unused]] const int ignored = ::fchown(file, old.st_uid, old.st_gid);
    ::fchmod(file, old.st_mode & 07777U);
  }

  void forget_name(bool remove) {
    if (unfinished == name.c_str()) unfinished = nullptr;
    if (remove) ::unlink(name.c_str());
    name.clear();
  }

  /// Gives the open file a name. @return 0 or the system's reason.
  [[nodiscard]] int link_as(const std::string& as) const {
    const std::string self = fmt::format("/proc/self/fd/{}", file);
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, as.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
  }

  /// @return 0 or the system's reason.
  int close_file() { return ::close(std::exchange(file, -1)) == 0 ? 0 : errno; }

  /// @return 0 or the system's reason.
  int move_to_target() {
    const SignalsHeld held;
    if (name.empty()) {
      // A new file gets its name in one step; only what replaces another has a name of its own for a moment.
      const int linked = link_as(target);
      if (linked == 0) {
        const int closed = close_file();
        if (closed != 0) ::unlink(target.c_str());
        return closed;
      }
      if (linked != EEXIST) return linked;
      const std::string beside = name_beside(target);
      if (const int error = link_as(beside); error != 0) return error;
      name = beside;
    }
    const int closed = close_file();
    const int moved = closed == 0 && ::rename(name.c_str(), target.c_str()) != 0 ? errno : closed;
    forget_name(moved != 0);
    return moved;
  }

  std::string path;
  std::string target;
  bool in_place;
  std::string name;  ///< of the temporary file, when it has one
  int file = -1;
  std::optional<FileBuffer> buffer;
  std::optional<std::ostream> stream;
};

Replacement::Replacement(const std::string& path) : state_(std::make_unique<State>(path)) {}

Replacement::~Replacement() = default;

std::ostream& Replacement::stream() {
  return *state_->stream;
}

void Replacement::commit() {
  State& state = *state_;
  state.stream->flush();
  if (state.buffer->error() != 0) refuse(state.path, state.buffer->error());
  if (!*state.stream) refuse(state.path, "unknown reason");
  const int error = state.in_place ? 0 : state.move_to_target();
  if (error != 0) refuse(state.path, error);
}

GrowingFile::GrowingFile(const std::string& path, const std::string& begin) : path_(path) {
  const bool in_place = is_written_in_place(path);
  if (!in_place) {
    Replacement first(path);
    first.stream() << begin;
    first.commit();
  }
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) refuse(path, errno);
  const int error = in_place ? write_all(file_, begin.data(), begin.size()) : 0;
  if (error == 0) return;
  ::close(file_);
  refuse(path, error);
}

GrowingFile::~GrowingFile() {
  if (file_ >= 0) ::close(file_);
}

void GrowingFile::append(const std::string& text) {
  if (const int error = write_all(file_, text.data(), text.size()); error != 0) refuse(path_, error);
}

void remove_left_files(const std::string& folder) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto maker = maker_of(at->path().filename().string());
    std::error_code unknown;
    if (maker && at->is_regular_file(unknown) && ::kill(*maker, 0) != 0 && errno == ESRCH) left.push_back(at->path());
  }
  if (error) refuse(folder, error.value());
  for (const fs::path& path : left)
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) refuse(path.string(), errno);
}

void remove_unfinished_file() noexcept {
  if (const char* name = unfinished; name != nullptr) ::unlink(name);
}

}  // namespace simsync
