// Whether a table that `--resume` goes on with was made from the same files.
#pragma once
#include <string>

namespace simsync {

/// The file beside the table `csv` that has the hash of every file which its rows were made from: a line of SHA-256
/// and path each, as `sha256sum --check` reads it.
std::string inputs_file(const std::string& csv);

/// To be called when all inputs were read (FileLog) and before the first row is added: notes their hashes beside `csv`,
/// or, with rows in it already, compares them. Nothing for standard output, pipes and devices.
/// @return a note when the rows cannot tell what they were made from, else nothing.
/// @throws InputError naming the file that has changed since.
std::string keep_or_compare_inputs(const std::string& csv, bool has_rows);

}  // namespace simsync
