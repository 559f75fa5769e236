// Whole files, and the folders where the program's own data lie.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace simsync {

/// The content of `path`. @throws InputError when it cannot be read, is a folder or is larger than 64 MiB.
std::string read_file(const std::string& path);
/// Writes `text` to `path` through a temporary file, so that a killed run leaves the old content.
/// @throws InputError when it cannot be written.
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
