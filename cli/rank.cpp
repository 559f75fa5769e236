#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "base/wrap.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/terminal.hpp"
#include "cli/unknown.hpp"
#include "strategies/search/rank_study.hpp"

namespace simsync {
namespace {

constexpr const char* kDomain = "the same model, cluster, workers, batch and evaluator";

struct RankFlags {
  std::vector<std::string> tables;
  std::vector<std::string> sources;
  std::vector<std::string> rankers;
  RankStudyOptions options;
  std::string csv;
};

std::vector<TrialRow> rows_of(const std::vector<std::string>& paths) {
  std::vector<TrialRow> out;
  for (const std::string& path : paths)
    for (TrialRow& row : read_trials(CsvTable::load(path))) out.push_back(std::move(row));
  return out;
}

bool have_segments(const std::vector<TrialRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const TrialRow& row) { return !row.segments.empty(); });
}

/// @throws CapabilityError for a ranker that this build lacks, InputError for one whose columns the tables lack.
void expect_usable(RankerKind kind, bool have_segments) {
  (void)make_ranker(kind);
  if (kind == RankerKind::Recurrent && !have_segments)
    throw InputError("a table has no columns of segments ('segment1_bytes' and so on)",
                     "'simsync search --csv FILE' of this version writes them");
}

/// All kinds where none is named; of these the ones that can be used.
std::vector<RankerKind> kinds_of(const RankFlags& flags, bool have_segments) {
  std::vector<RankerKind> out;
  for (const auto& [word, kind] : ranker_words()) {
    const bool is_named = std::find(flags.rankers.begin(), flags.rankers.end(), word) != flags.rankers.end();
    if (!flags.rankers.empty() && !is_named) continue;
    try {
      expect_usable(kind, have_segments);
      out.push_back(kind);
    } catch (const std::runtime_error& e) {
      if (is_named) throw;
      std::cerr << "note: left out: " << word << ": " << e.what() << '\n';
    }
  }
  return out;
}

void tell(std::size_t count, const std::string& what) {
  if (count == 0) return;
  std::cerr << fmt::format("note: {} row{} left out: {}\n", count, count == 1 ? "" : "s", what);
}

void print_notes(const RankFlags& flags, const RankStudy& study) {
  tell(study.without_step, "no step time, the strategy could not run");
  tell(study.source_at_home, fmt::format("a source with {} as what is ranked", kDomain));
  tell(study.of_small_domains, fmt::format("fewer than {} strategies with {}", kFewestOfDomain, kDomain));
  if (study.repeated > 0)
    std::cerr << fmt::format(
        "note: {} row{} of a strategy that an earlier row has, with {}: they are one trial, which takes "
        "the mean of their steps\n",
        study.repeated, study.repeated == 1 ? " is" : "s are", kDomain);
  if (study.without_pairs > 0)
    std::cerr << fmt::format(
        "note: {} time{} the trials that are held out are too few or take equally long, so that there is "
        "nothing to put in order\n",
        study.without_pairs, study.without_pairs == 1 ? "" : "s");
  if (!flags.sources.empty() && study.source == 0)
    std::cerr << "note: --source has fewer than two trials to learn from, so that nothing is transferred\n";
  for (const int train : flags.options.train) {
    if (train < 2) continue;  // nothing is learned here
    const bool is_learned = std::any_of(study.results.begin(), study.results.end(),
                                        [&](const RankResult& one) { return one.train == train; });
    if (!is_learned)
      std::cerr << fmt::format("note: no model on a cluster has {} trials besides those held out\n", train);
  }
}

/// In the order of their size, each once.
void check_train(RankFlags& flags) {
  auto& train = flags.options.train;
  std::sort(train.begin(), train.end());
  train.erase(std::unique(train.begin(), train.end()), train.end());
  if (flags.sources.empty() && !train.empty() && train.front() < 2)
    throw CLI::ValidationError("--train", fmt::format("{} trial{}: nothing is learned from fewer than 2 without "
                                                      "--source",
                                                      train.front(), train.front() == 1 ? "" : "s"));
}

/// What has a line of the table: a ranker and how it begins.
std::string label_of(const RankResult& result) {
  if (result.start == "source") return result.ranker + ", source alone";
  return result.start == "transfer" ? result.ranker + ", transferred" : result.ranker;
}

/// Of one seed: the mean over domains. Then mean and standard deviation over seeds.
class Cell {
public:
  void add(const RankResult& result) {
    domains_.insert(result.domain);
    auto& [sum, count] = seeds_[result.seed];
    sum += result.accuracy;
    ++count;
  }
  [[nodiscard]] std::string text(bool unicode) const {
    double sum = 0.0;
    double squares = 0.0;
    for (const auto& [seed, one] : seeds_) {
      const double mean = one.first / one.second;
      sum += mean;
      squares += mean * mean;
    }
    const auto count = static_cast<double>(seeds_.size());
    const double mean = sum / count;
    const double spread = count > 1 ? std::sqrt(std::max(0.0, (squares - count * mean * mean) / (count - 1))) : 0.0;
    return fmt::format("{:.3f} {}{:.3f}", mean, unicode ? "±" : "+-", spread);
  }

  [[nodiscard]] std::size_t domains() const { return domains_.size(); }

private:
  std::map<int, std::pair<double, int>> seeds_;  ///< sum and number
  std::set<TrialDomain> domains_;
};

struct Table {
  std::vector<std::string> labels;
  std::map<std::string, std::map<int, Cell>> lines;  ///< by label, by trials learned
  std::vector<int> columns;

  explicit Table(const RankStudy& study) {
    for (const RankResult& result : study.results) {
      const std::string label = label_of(result);
      if (!lines.contains(label)) labels.push_back(label);
      lines[label][result.train].add(result);
      if (std::find(columns.begin(), columns.end(), result.train) == columns.end()) columns.push_back(result.train);
    }
    std::sort(columns.begin(), columns.end());
  }

  void print() const {
    print_line("trials learned", [](int train) { return std::to_string(train); });
    for (const std::string& label : labels) print_line(label, [&](int train) { return text_of(label, train); });
    if (std::any_of(columns.begin(), columns.end(), [&](int train) { return tasks(train) != tasks(columns.front()); }))
      print_line("mean of tasks", [&](int train) { return std::to_string(tasks(train)); });
  }

private:
  /// That have so many trials to learn.
  [[nodiscard]] std::size_t tasks(int train) const {
    std::size_t out = 0;
    for (const auto& [label, cells] : lines)
      if (const auto found = cells.find(train); found != cells.end()) out = std::max(out, found->second.domains());
    return out;
  }

  [[nodiscard]] std::string text_of(const std::string& label, int train) const {
    const auto found = lines.at(label).find(train);
    return found == lines.at(label).end() ? "" : found->second.text(terminal_style().unicode);
  }

  [[nodiscard]] std::size_t first_width() const {
    std::size_t out = std::string("trials learned").size();
    for (const std::string& label : labels) out = std::max(out, label.size());
    return out;
  }

  template <class Text>
  void print_line(const std::string& label, Text text_of) const {
    constexpr std::size_t kCell = 15;
    std::string line = fitted(label, first_width(), terminal_style());
    for (const int train : columns) {
      const std::string text = text_of(train);
      line += std::string(kCell - columns_of(text), ' ') + text;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
};

void print_report(const RankFlags& flags, const RankStudy& study) {
  const auto& first = study.domains.front();
  const std::string what =
      study.domains.size() == 1
          ? fmt::format("{} on {}, {} worker{}, batch {} per worker, by {}", first.model, first.cluster, first.workers,
                        first.workers == 1 ? "" : "s", first.batch, first.evaluator)
          : fmt::format("{} tasks, each with {}", study.domains.size(), kDomain);
  std::string title = fmt::format(
      "{}: {} trials. Share of the pairs in the right order, of the {:.0f} % that are held out; mean and standard "
      "deviation over {} seed{}",
      what, study.trials, 100.0 * flags.options.held_out, flags.options.seeds, flags.options.seeds == 1 ? "" : "s");
  if (study.source > 0) title += fmt::format("; {} trials are learned elsewhere", study.source);
  std::cout << wrapped(title, terminal_style().width) << "\n\n";
  const Table table(study);
  table.print();
}

void run_rank(RankFlags& flags) {
  check_train(flags);
  const auto rows = rows_of(flags.tables);
  const auto sources = rows_of(flags.sources);
  flags.options.rankers = kinds_of(flags, have_segments(rows) && have_segments(sources));
  std::optional<ProgressBar> bar;
  flags.options.progress = [&](std::size_t done, std::size_t all) {
    if (!bar) bar.emplace(all);
    bar->set(done);
  };
  const RankStudy study = study_rankers(rows, sources, flags.options);
  bar.reset();
  if (study.domains.empty())
    throw InputError(
        fmt::format("nothing to rank: there are not {} strategies with a step time and {}", kFewestOfDomain, kDomain),
        "'simsync search --csv FILE' writes such tables");
  print_notes(flags, study);
  if (!flags.csv.empty()) {
    std::string text = csv_row(rank_header()) + "\n";
    for (const RankResult& result : study.results) text += csv_row(rank_cells(result)) + "\n";
    if (flags.csv == "-") {
      std::cout << text;
      return;
    }
    write_file(flags.csv, text);
  }
  print_report(flags, study);
}

/// What is held out, learned and known before.
void add_study_flags(CLI::App& command, RankStudyOptions& options) {
  command
      .add_option("--train", options.train,
                  "Trials that are learned; 0, with --source: none, to see what was learned elsewhere")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 1'000'000))
      ->default_str("20,50,100,200");
  command.add_option("--seeds", options.seeds, "Different trials are held out for each of 1 to SEEDS")
      ->check(whole_number(1, 1'000))
      ->capture_default_str();
  command.add_option("--held-out", options.held_out, "Share of the trials that rankers do not learn")
      ->check(number_between(0.05, 0.95))
      ->capture_default_str();
  command
      .add_option("--simulator-worth", options.worth.simulator,
                  "With so many trials learned, these and the simulator's order count alike; 0: the simulator does not "
                  "count. Rankers without simulated features have no use for it")
      ->check(number_between(0.0, 1e6))
      ->capture_default_str();
  command
      .add_option("--source-worth", options.worth.source,
                  "With --source: with so many trials learned, these and what was learned elsewhere count alike")
      ->check(number_between(0.1, 1e6))
      ->capture_default_str();
}

}  // namespace

void setup_rank(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<RankFlags>();
  auto* command = app.add_subcommand("rank", "How well rankers order strategies that they have not seen");
  command->add_option("tables", flags->tables, "Tables of trials, as search --csv writes them")->required();
  command
      ->add_option("--source", flags->sources,
                   "Tables of other models or clusters: what each ranker learns there is transferred")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--ranker", flags->rankers, "Which rankers (default: all that this build has)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names_in(ranker_words())));
  add_study_flags(*command, flags->options);
  command
      ->add_option("--csv", flags->csv,
                   "Write a row for every ranker, number of trials and seed to this file; '-' is standard output, "
                   "instead of the table")
      ->check(output_file("--csv"));
  command->callback([flags] { run_rank(*flags); });
}

}  // namespace simsync
