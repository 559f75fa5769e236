// Whether a table that `--resume` goes on with was made from the same files.
#pragma once
#include <string>

#include "cli/row_file.hpp"

namespace simsync {

/// The file beside the table `csv` that has the hash of every file which its rows were made from: a line of SHA-256
/// and path each, as `sha256sum --check` reads it.
std::string inputs_file(const std::string& csv);

/// A table that --resume can go on with, to be opened when all inputs were read (FileLog): notes their hashes beside
/// `csv`, or, with rows in it already, compares them. Rows that cannot tell what they were made from get a note on
/// standard error. No hashes for standard output, pipes and devices.
/// @throws InputError naming the file that has changed since; as RowFile does.
RowFile open_resumable(const std::string& csv, const std::string& header, bool resume);
/// Who interrupts the command is told that `csv` keeps its rows; nothing for standard output.
void tell_how_to_resume(const std::string& csv);

}  // namespace simsync
