#include "strategies/search/rank_study.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "base/random.hpp"

namespace simsync {
namespace {

using Rows = std::vector<TrialRow>;

/// In the order in which the tables have them, so that other names draw the same.
using Domains = std::vector<std::pair<TrialDomain, Rows>>;

/// Rows that have a step, by domain; counts the others.
Domains domains_of(const Rows& rows, std::size_t& without_step) {
  Domains out;
  for (const TrialRow& row : rows) {
    if (!row.step) {
      ++without_step;
      continue;
    }
    const TrialDomain domain = domain_of(row);
    auto found = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.first == domain; });
    if (found == out.end()) found = out.insert(out.end(), {domain, {}});
    found->second.push_back(row);
  }
  return out;
}

/// Each strategy of a domain once, where it comes first, with the mean of its steps.
Rows without_repeats(const Rows& rows) {
  Rows out;
  std::map<std::string, std::size_t> at;  // by strategy_id
  std::vector<int> counts;
  for (const TrialRow& row : rows) {
    const auto [known, is_new] = at.emplace(row.strategy_id, out.size());
    if (is_new) {
      out.push_back(row);
      counts.push_back(1);
    } else {
      Seconds& mean = *out[known->second].step;
      mean += (*row.step - mean) / ++counts[known->second];
    }
  }
  return out;
}

/// Trials of a domain as one seed sees them.
struct Split {
  Rows held;
  Rows others;  ///< rankers learn the first of them
};

Split split_of(const Rows& rows, double share, std::uint64_t seed) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const auto held = static_cast<std::size_t>(std::lround(share * static_cast<double>(rows.size())));
  Split out;
  for (std::size_t i = 0; i < order.size(); ++i) (i < held ? out.held : out.others).push_back(rows[order[i]]);
  return out;
}

/// What each kind has learned elsewhere.
using Sources = std::map<RankerKind, TransferSource>;

class Study {
public:
  Study(RankStudy& out, const RankStudyOptions& options, std::size_t domains)
      : out_(out),
        options_(options),
        tasks_(domains * static_cast<std::size_t>(options.seeds) * options.rankers.size() * options.train.size()) {}

  void learn_elsewhere(const Rows& source) {
    if (source.size() < 2) return;
    out_.source = source.size();
    for (const RankerKind kind : options_.rankers) {
      const auto examples = examples_of(kind, source);
      sources_[kind] = source_of(kind, learned_ranker(kind, examples, std::nullopt, options_.worth), examples);
    }
  }

  void add_domain(const TrialDomain& domain, const Rows& rows) {
    for (int seed = 1; seed <= options_.seeds; ++seed) {
      const Split split =
          split_of(rows, options_.held_out, stream_seed(static_cast<std::uint64_t>(seed), {out_.domains.size()}));
      const RankResult base{
          .domain = domain, .ranker = {}, .start = {}, .seed = seed, .held_out = static_cast<int>(split.held.size())};
      if (!has_pairs(examples_of(RankerKind::Linear, split.held))) {
        ++out_.without_pairs;
        add_done(options_.rankers.size() * options_.train.size());
        continue;
      }
      add_simulations(base, split);
      for (const RankerKind kind : options_.rankers)
        for (const int train : options_.train) {
          add_ranker(base, split, kind, train);
          add_done(1);
        }
    }
    out_.domains.push_back(domain);
    out_.trials += rows.size();
  }

private:
  void add_done(std::size_t tasks) {
    done_ += tasks;
    if (options_.progress) options_.progress(done_, tasks_);
  }

  void add_simulations(RankResult result, const Split& split) {
    const auto examples = examples_of(RankerKind::Linear, split.held);
    const auto add = [&](const char* name, auto time_of) {
      std::vector<double> scores;
      for (const TrialRow& row : split.held) {
        const std::optional<Seconds> time = time_of(row);
        if (!time) return;
        scores.push_back(time->value());
      }
      result.ranker = name;
      result.accuracy = pairwise_accuracy(examples, scores);
      out_.results.push_back(result);
    };
    add("estimate", [](const TrialRow& row) { return std::optional(row.estimated); });
    add("replay", [](const TrialRow& row) { return row.replayed; });
  }

  void add_ranker(RankResult result, const Split& split, RankerKind kind, int train) {
    if (static_cast<std::size_t>(train) > split.others.size()) return;
    const auto held = examples_of(kind, split.held);
    const auto known = examples_of(kind, Rows(split.others.begin(), split.others.begin() + train));
    result.ranker = name_of(kind);
    result.train = train;
    const auto add = [&](const char* start, const Ranker& ranker) {
      result.start = start;
      result.accuracy = pairwise_accuracy(held, ranker);
      out_.results.push_back(result);
    };
    if (known.size() >= 2) add("scratch", *learned_ranker(kind, known, std::nullopt, options_.worth));
    const auto source = sources_.find(kind);
    if (source == sources_.end()) return;
    result.source = static_cast<int>(out_.source);
    if (known.empty()) add("source", *source->second.ranker);
    add("transfer", *learned_ranker(kind, known, source->second, options_.worth));
  }

  RankStudy& out_;
  const RankStudyOptions& options_;
  std::size_t tasks_;
  std::size_t done_ = 0;
  Sources sources_;
};

}  // namespace

RankStudy study_rankers(const std::vector<TrialRow>& rows, const std::vector<TrialRow>& source,
                        const RankStudyOptions& options) {
  SIMSYNC_ASSERT(options.held_out > 0.0 && options.held_out < 1.0);
  RankStudy out;
  Domains ranked;
  const Domains all = domains_of(rows, out.without_step);
  for (const auto& [domain, members] : all) {
    Rows trials = without_repeats(members);
    out.repeated += members.size() - trials.size();
    if (trials.size() < kFewestOfDomain) {
      out.of_small_domains += trials.size();
    } else {
      ranked.emplace_back(domain, std::move(trials));
    }
  }
  Rows elsewhere;
  for (const auto& [domain, members] : domains_of(source, out.without_step)) {
    const auto is_this = [&domain = domain](const auto& one) { return one.first == domain; };
    if (std::any_of(all.begin(), all.end(), is_this)) {
      out.source_at_home += members.size();
    } else {
      const Rows trials = without_repeats(members);
      elsewhere.insert(elsewhere.end(), trials.begin(), trials.end());
    }
  }
  Study study(out, options, ranked.size());
  study.learn_elsewhere(elsewhere);
  for (const auto& [domain, members] : ranked) study.add_domain(domain, members);
  return out;
}

const std::vector<std::string>& rank_header() {
  static const std::vector<std::string> kHeader{"ranker",  "start",           "trained_on",       "source_trials",
                                                "seed",    "held_out_trials", "accuracy",         "model",
                                                "cluster", "workers",         "batch_per_worker", "evaluator"};
  return kHeader;
}

std::vector<std::string> rank_cells(const RankResult& result) {
  return {result.ranker,
          result.start,
          std::to_string(result.train),
          std::to_string(result.source),
          std::to_string(result.seed),
          std::to_string(result.held_out),
          format_number(result.accuracy),
          result.domain.model,
          result.domain.cluster,
          std::to_string(result.domain.workers),
          std::to_string(result.domain.batch),
          result.domain.evaluator};
}

}  // namespace simsync
