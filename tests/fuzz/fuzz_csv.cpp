// A table; its rows must survive being written and read again.
#include "base/csv.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const auto table = simsync::CsvTable::parse(text, "table.csv");
    for (std::size_t row = 0; row < table.size(); ++row) {
      for (const auto& column : table.header()) (void)table.cell(row, column);
    }
    if (table.size() > 0) (void)table.number(table.size() - 1, table.header().back());
  });
}
