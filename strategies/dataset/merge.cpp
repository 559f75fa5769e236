#include "strategies/dataset/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <tuple>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "strategies/dataset/layout.hpp"
#include "strategies/dataset/question.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

struct Part {
  std::string folder;
  DatasetQuestion question;
};

struct Row {
  std::string model, cluster;
  int workers = 1;
  int trial = 0;
  std::string id;
  std::string line;
  const Part* part = nullptr;

  [[nodiscard]] auto key() const { return std::tie(model, cluster, workers, trial); }
};

[[noreturn]] void refuse(const std::string& path, const std::string& message, const std::string& help = {}) {
  throw InputError(
      Diagnostic{.origin = {path, 0, 0}, .message = message, .key = {}, .source_line = {}, .note = {}, .help = help});
}

DatasetQuestion whole(DatasetQuestion question) {
  question.shard = question.shards = 1;
  return question;
}

std::vector<Part> parts_of(const std::vector<std::string>& folders) {
  std::vector<Part> out;
  for (const std::string& folder : folders) {
    const std::string file = question_file(folder);
    out.push_back({folder, parse_question(read_file(file), file)});
    if (whole(out.back().question) != whole(out.front().question) ||
        out.back().question.shards != out.front().question.shards)
      refuse(file, fmt::format("another data set than that of {}", question_file(folders.front())),
             "shards have the same question but for the shard");
  }
  return out;
}

/// Each shard once.
void check_shards(const std::vector<Part>& parts) {
  const int shards = parts.front().question.shards;
  std::vector<const Part*> found(static_cast<std::size_t>(shards));
  for (const Part& part : parts) {
    const Part*& place = found[static_cast<std::size_t>(part.question.shard - 1)];
    if (place != nullptr)
      refuse(part.folder, fmt::format("shard {} of {}, as {} is", part.question.shard, shards, place->folder));
    place = &part;
  }
  const auto missing = std::find(found.begin(), found.end(), nullptr);
  if (missing != found.end())
    refuse(parts.front().folder, fmt::format("shard {} of {} is missing", missing - found.begin() + 1, shards));
}

void add_rows(const Part& part, std::vector<Row>& rows) {
  const std::string path = table_file(part.folder);
  const std::string text = read_file(path);
  const CsvTable table = CsvTable::parse(text, path);
  if (table.header() != trial_header()) refuse(path, "other columns than this version of simsync writes");
  const auto number = [&](std::size_t row, const char* column) {
    return static_cast<int>(table.number(row, column).value_or(0.0));
  };
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  for (std::size_t i = 0; i < table.size() && std::getline(lines, line); ++i)
    rows.push_back({.model = table.cell(i, "model"),
                    .cluster = table.cell(i, "cluster"),
                    .workers = number(i, "workers"),
                    .trial = number(i, "trial"),
                    .id = table.cell(i, "strategy_id"),
                    .line = line,
                    .part = &part});
}

void copy_pair(const Row& row, const std::string& out) {
  const std::string combination = combination_folder(row.model, row.cluster, row.workers);
  const fs::path from = fs::path(row.part->folder) / combination;
  const fs::path to = fs::path(out) / combination;
  for (const char* kind : {"resource_spec", "runtime", "strategy"}) {
    make_folders((to / kind).string());
    std::error_code error;
    fs::copy_file(from / kind / row.id, to / kind / row.id, fs::copy_options::overwrite_existing, error);
    if (error) refuse((from / kind / row.id).string(), "cannot be copied: " + error.message());
  }
}

/// The hashes of a file that lists what rows were made from, without paths: another machine has others.
std::vector<std::string> hashes_in(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out.push_back(line.substr(0, line.find(' ')));
  return out;
}

/// What the rows of all parts were made from, which must be alike; the paths are those of the first part.
void copy_inputs(const std::vector<Part>& parts, const std::string& out) {
  const auto inputs_of = [](const std::string& folder) { return table_file(folder) + ".inputs"; };
  if (!fs::exists(inputs_of(parts.front().folder))) return;
  const std::string first = read_file(inputs_of(parts.front().folder));
  for (const Part& part : parts)
    if (!fs::exists(inputs_of(part.folder)) || hashes_in(read_file(inputs_of(part.folder))) != hashes_in(first))
      refuse(inputs_of(part.folder), fmt::format("made from other files than {}", table_file(parts.front().folder)),
             "shards are made from the same models, clusters and profiles");
  write_file(inputs_of(out), first);
}

}  // namespace

MergedPairs merge_datasets(const std::vector<std::string>& folders, const std::string& out) {
  const std::vector<Part> parts = parts_of(folders);
  check_shards(parts);
  std::vector<Row> rows;
  for (const Part& part : parts) add_rows(part, rows);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key() < b.key(); });
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].key() == rows[i - 1].key())
      refuse(table_file(rows[i].part->folder),
             fmt::format("pair {} of {} on {} with {} workers is there twice", rows[i].trial, rows[i].model,
                         rows[i].cluster, rows[i].workers));
  make_folders(out);
  if (fs::exists(table_file(out))) refuse(table_file(out), "exists already", "name another folder");
  copy_inputs(parts, out);
  for (const Row& row : rows) copy_pair(row, out);
  write_file(question_file(out), to_yaml(whole(parts.front().question)));
  write_file(table_file(out), [&](std::ostream& to) {
    to << csv_row(trial_header()) << '\n';
    for (const Row& row : rows) to << row.line << '\n';
  });
  const DatasetQuestion& asked = parts.front().question;
  return {.made = rows.size(),
          .asked = asked.models.size() * asked.clusters.size() * asked.workers.size() *
                   static_cast<std::size_t>(asked.pairs)};
}

}  // namespace simsync
