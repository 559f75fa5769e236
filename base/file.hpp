// Whole files, and the folders where the program's own data lie.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace simsync {

/// The content of `path`, an input of the command, without a byte order mark of UTF-8.
/// @throws InputError when it cannot be read, is a folder, is larger than 64 MiB or is an output of the command too
/// (file_log.hpp).
std::string read_file(const std::string& path);
/// The same of a file that the command has written, or goes on with.
std::string read_output(const std::string& path);
/// Replaces the content of `path` as a whole (output_file.hpp).
/// @throws InputError when it cannot be written or is an input of the command.
void write_file(const std::string& path, const std::string& text);
/// The same for content that `write` puts into a stream, because it is too large to be held.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);
/// Before long work whose result goes to `path`; leaves nothing behind. @throws InputError as write_file would.
void expect_writable(const std::string& path);

/// Folder `room` of the program's data (`models/zoo`, `platforms/presets`, ...): `SIMSYNC_DATA` when it is set,
/// else the share folder of the installation that the running program belongs to, else the source tree that it was
/// built from, else the share folder of the prefix that it was built for.
std::string data_folder(const std::string& room);
/// Names (without folder and `extension`) of the files in `folder`, sorted; empty when there is no such folder.
std::vector<std::string> list_files(const std::string& folder, const std::string& extension);
/// The file that `name` means: a path when it contains '/' or ends in `extension`, else a file of `room`.
/// @throws InputError naming the closest known name. `what` is the noun in the message ("model").
std::string resolve_name(const std::string& name, const std::string& room, const std::string& extension,
                         const std::string& what);

}  // namespace simsync
