// Work spread over processes (SimGrid allows one engine per process) and rows written one by one.
#pragma once
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>

namespace simsync {

/// Calls `work(i)` for i = 0 ... count-1 in `jobs` child processes and hands the texts to `done` in the order of i,
/// each as soon as it and all before it are there. With one job everything runs in this process.
/// @throws InputError with the child's message when `work` throws in a child.
void run_in_processes(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                      const std::function<void(std::size_t, const std::string&)>& done);

/// A CSV file that grows row by row, so that a killed run loses at most the row in flight.
class RowFile {
public:
  /// `path` "-" is standard output. With `resume` the rows of an existing file stay and a cut-off last row is
  /// removed; otherwise the file begins anew. @throws InputError when it cannot be written or has another header.
  RowFile(const std::string& path, const std::string& header, bool resume);
  void append(const std::string& row);
  [[nodiscard]] std::size_t rows_found() const { return rows_found_; }

private:
  std::string path_;
  std::ofstream file_;
  bool standard_output_;
  std::size_t rows_found_ = 0;
};

}  // namespace simsync
