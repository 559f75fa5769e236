// Flags that name files to write.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace simsync {

/// `path`, which `flag` gave, will be written. @throws InputError when it is an input of this command or another of its
/// outputs (base/file_log.hpp), or cannot be written; nothing is written yet. "-" and no path mean standard output.
void announce_output(const std::string& path, const std::string& flag);

/// A check of an option: its value is not empty and can be announced.
CLI::Validator output_file(const std::string& flag);
/// The same of a file that one of several processes writes: this one may have no such folder.
CLI::Validator output_file_of_one(const std::string& flag);

}  // namespace simsync
