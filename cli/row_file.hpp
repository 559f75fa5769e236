// A CSV file that grows row by row, so that a killed run loses at most the row in flight.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "base/output_file.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

class RowFile {
public:
  /// `path` "-" is standard output, which stays empty until there is a row. With `resume` the rows of an existing file
  /// stay and a cut-off last row is removed; otherwise the file begins anew. @throws InputError when it cannot be
  /// written or has another header.
  RowFile(const std::string& path, const std::string& header, bool resume);
  void append(const std::string& row);
  /// The rows that stayed.
  [[nodiscard]] const CsvTable& found() const { return found_; }

private:
  std::string header_;
  std::unique_ptr<GrowingFile> file_;
  bool standard_output_;
  bool begun_ = false;  ///< the header is out, on standard output
  CsvTable found_;
};

/// The requests that have no row in `found` yet, in their order: among them those that were skipped before.
/// @throws InputError naming the row that no request makes, or that was made with other settings.
std::vector<PredictRequest> without_row(const std::vector<PredictRequest>& requests, const CsvTable& found,
                                        Inputs& inputs);

}  // namespace simsync
