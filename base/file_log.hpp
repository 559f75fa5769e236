// Which files a command reads and which it writes, so that no output takes the place of an input.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simsync {

/// A file as it was when this process read it.
struct ReadFile {
  std::string path;  ///< absolute, without symbolic links
  std::string sha256;
};

/// While one lives, readers and writers of files note in it what they touch, and refuse what is both an input and an
/// output, by whatever path, before anything is written. There is at most one; without one nothing is refused. Pipes
/// and devices are left out.
class FileLog {
public:
  FileLog();
  ~FileLog();
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;
  /// The one that lives, or nullptr.
  static FileLog* current();

  /// `text` was read from `path`. @throws InputError when that is an output.
  void add_input(const std::string& path, std::string_view text);
  /// The same for a reader that keeps no text; it is not among inputs().
  void add_input(const std::string& path);
  /// `path`, which `flag` gave, will be written. @throws InputError when it was read or is another flag's output.
  void add_output(const std::string& path, const std::string& flag);
  /// `path` is about to be written. @throws InputError when it was read.
  void expect_no_input(const std::string& path) const;
  /// What was read so far, in that order, each file once.
  [[nodiscard]] const std::vector<ReadFile>& inputs() const { return inputs_; }

private:
  /// Of a file that exists, its device and number; of one that does not, its path.
  struct Identity {
    unsigned long long device = 0;
    unsigned long long number = 0;
    std::string path;
    friend auto operator<=>(const Identity&, const Identity&) = default;
  };
  /// Its identity is asked for anew each time: the file may have been made, or replaced, since it was announced.
  struct Output {
    std::string path;
    std::string flag;
  };
  static Identity identity_of(const std::string& path);
  /// @return whether it is new.
  bool note(const std::string& path);

  std::set<Identity> read_;
  std::vector<ReadFile> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace simsync
