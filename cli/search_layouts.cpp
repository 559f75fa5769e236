#include "cli/search_layouts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/output_file.hpp"
#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "cli/interruption.hpp"
#include "cli/layout_report.hpp"
#include "cli/search_question.hpp"
#include "cli/terminal.hpp"
#include "cli/worker_pool.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/layout_question.hpp"
#include "strategies/export/framework.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

constexpr double kSecondsPerHour = 3600.0;

std::map<std::string, std::string> split_settings(const LayoutSearchFlags& flags, PredictRequest& request) {
  std::map<std::string, std::string> space;
  const std::string prefix = kSpacePrefix;
  for (const auto& [key, value] : flags.settings) {
    if (key.starts_with(prefix)) {
      space[key.substr(prefix.size())] = value;
    } else {
      request.settings.emplace_back(key, value);
    }
  }
  return space;
}

/// One number of workers.
class LayoutRun {
public:
  LayoutRun(const LayoutSearchFlags& flags, int workers, Inputs& inputs)
      : flags_(flags),
        request_(request_of(flags, workers)),
        question_(request_, flags.samples, inputs),
        inputs_(inputs) {
    PredictRequest unused;
    const LayoutSpace space =
        layout_space(split_settings(flags, unused), question_.model(), question_.cluster(), question_.task());
    result_ = search_layouts(
        space, question_.task(), [this](const Layout& layout) { return question_.cost(layout); }, flags.options,
        [] { return HeldInterruption::signal() != 0; });
  }

  [[nodiscard]] const LayoutSearchResult& result() const { return result_; }
  [[nodiscard]] const LayoutQuestion& question() const { return question_; }
  [[nodiscard]] bool found() const { return !result_.evaluated.empty() && result_.evaluated.front().cost.fits(); }

  /// Of these layouts, by their plans; those that cannot be simulated, as too large, say why.
  std::vector<ShownLayout> replayed(const std::vector<EvaluatedLayout>& layouts, Solver solver) {
    std::vector<ShownLayout> out;
    for (const EvaluatedLayout& one : layouts)
      out.push_back({.found = one, .replayed = {}, .solver = {}, .obstacle = {}});
    (void)run_in_processes(
        out.size(), flags_.jobs, [&](std::size_t i) { return replay_text(layouts[i].layout, solver); },
        [&](std::size_t i, const std::string& text) {
          if (text.starts_with(kObstacle)) {
            out[i].obstacle = text.substr(1);
            return;
          }
          out[i].replayed = Seconds{parse_number(text).value()};
          out[i].solver = name_of(solver);
        },
        [] { return HeldInterruption::signal() != 0; });
    return out;
  }

private:
  static constexpr char kObstacle = '!';  ///< begins what stands in the place of a number

  static PredictRequest request_of(const LayoutSearchFlags& flags, int workers) {
    PredictRequest request = flags.request;
    request.workers = workers;
    (void)split_settings(flags, request);
    return request;
  }

  std::string replay_text(const Layout& layout, Solver solver) {
    try {
      Problem problem = prepare(question_.request_for(layout), inputs_);
      problem.options.solver = solver;
      return fmt::format("{:.17g}", replay(problem.plan, problem.cluster, problem.options).step.value());
    } catch (const PlanError& e) {
      return kObstacle + std::string(e.what());
    }
  }

  const LayoutSearchFlags& flags_;
  PredictRequest request_;
  LayoutQuestion question_;
  Inputs& inputs_;
  LayoutSearchResult result_;
};

int nodes_of(const LayoutQuestion& question) {
  std::set<int> nodes;
  for (const Place& worker : question.cluster().workers(question.task().workers)) nodes.insert(worker.node);
  return static_cast<int>(nodes.size());
}

std::string precision_of(const LayoutSearchFlags& flags, const LayoutQuestion& question) {
  std::string out = question.cluster().precision;
  for (const auto& [key, value] : flags.settings)
    if (key == "precision") out = value;
  return out;
}

std::string step_text(const LayoutSearchFlags& flags, const LayoutQuestion& question, const ShownLayout& shown) {
  const double samples = static_cast<double>(question.task().samples) / shown.step().value();
  std::string out =
      fmt::format("{} ({:.4g} {}s/s", format_seconds(shown.step()), samples, question.model().sample_unit());
  if (const auto share = model_flops_utilization(question, precision_of(flags, question), shown.step()))
    out += fmt::format(", {:.1f} % of the devices' peak{}", 100.0 * *share,
                       *share > 1.0 ? " (convolutions are counted as direct ones; Winograd's compute less)" : "");
  out += ")";
  out += shown.replayed
             ? fmt::format(", replayed ({}); estimate {}", shown.solver, format_seconds(shown.found.cost.step))
             : fmt::format(", estimated; not replayed: {}", shown.obstacle);
  return out;
}

void print_heading(const LayoutSearchFlags& flags, LayoutRun& run) {
  const LayoutQuestion& question = run.question();
  std::cout << wrapped(fmt::format("{} on {}, {} workers, {} samples a step: layouts by {}, seed {}",
                                   question.model().name(), question.cluster().name, question.task().workers,
                                   question.task().samples, word_for(layout_method_words(), flags.options.method),
                                   flags.options.seed),
                       terminal_style().width)
            << '\n';
  const LayoutSearchResult& result = run.result();
  const std::string misfits = run.question().ignores_memory()
                                  ? std::string("memory ignored")
                                  : fmt::format("of which {} do not fit into memory", result.misfits());
  print_line("layouts", fmt::format("{} estimated, {}; {} more are impossible (heads, experts, blocks or samples do "
                                    "not divide)",
                                    result.evaluated.size(), misfits, result.impossible));
}

/// What the best layout moves, beside what no layout can do without.
std::string sent_text(const LayoutQuestion& question, const Layout& layout) {
  const SentBytes sent = question.sent(layout);
  std::vector<std::string> parts;
  const auto add = [&](double bytes, const char* to) {
    if (bytes > 0.0) parts.push_back(fmt::format("{} {}", format_bytes(bytes), to));
  };
  add(sent.split, "among ranks that share out layers, experts or tokens");
  add(sent.stages, "between stages");
  add(sent.gradients, "among replicas");
  if (parts.empty()) return "nothing";
  std::string out = fmt::format("{} a step by the busiest rank", fmt::join(parts, ", "));
  if (const double least = question.least_bytes_sent(); least > 0.0)
    out += fmt::format(". Without a pipeline the best grids of its dense layers alone send {}", format_bytes(least));
  return out;
}

/// The step of a layout that fits, replayed where it and the best were, and how much longer it is.
std::string beside_best(const LayoutRun& run, const EvaluatedLayout& one, const ShownLayout& best,
                        const std::vector<ShownLayout>& replayed) {
  const auto found = std::find_if(replayed.begin(), replayed.end(),
                                  [&](const ShownLayout& shown) { return shown.found.layout == one.layout; });
  const bool both = found != replayed.end() && found->replayed && best.replayed;
  const Seconds step = both ? *found->replayed : one.cost.step;
  return fmt::format("{} {} ({:.2f}x the best), {}", format_seconds(step), both ? "replayed" : "estimated",
                     step / (both ? *best.replayed : best.found.cost.step), text_of(one.layout, run.question().task()));
}

/// What every family comes to, so that the gain over each is seen.
void print_families(const LayoutRun& run, const ShownLayout& best, const std::vector<ShownLayout>& replayed) {
  for (const EvaluatedLayout& one : best_of_families(run.result())) {
    const std::string label = name_of(family_of(one.layout));
    print_line(label, one.cost.fits() ? beside_best(run, one, best, replayed)
                                      : fmt::format("none fits; closest to it is {}, which lacks {}",
                                                    text_of(one.layout, run.question().task()),
                                                    format_bytes(static_cast<double>(one.cost.over.count))));
  }
}

/// Where the best layout splits layers in another way than frameworks do, the best of those that do as these.
void print_rule(const LayoutRun& run, const ShownLayout& best, const std::vector<ShownLayout>& replayed) {
  if (best.found.layout.splits.empty()) return;
  if (const EvaluatedLayout* rule = best_by_rule(run.result()))
    print_line("by rule", beside_best(run, *rule, best, replayed) +
                              "; layers split as Megatron-LM does, which --set space.splits=rule keeps to");
}

/// Frameworks that can follow the layout, and the command that says what they are told; or why none can.
std::string told_text(const LayoutQuestion& question, const LayoutSearchFlags& flags, const Layout& layout) {
  const Strategy strategy = question.strategy(layout);
  std::vector<std::string> able;
  std::map<std::string, std::vector<std::string>> unable;  // by what is refused
  for (const auto& [word, framework] : framework_words()) {
    const ExportQuestion asked{.strategy = strategy,
                               .model = question.model(),
                               .batch = question.task().batch(layout),
                               .precision = precision_of(flags, question),
                               .optimizer = question.optimizer()};
    const std::vector<std::string> refusals = framework_settings(framework, asked).refusals;
    if (refusals.empty()) {
      able.push_back(word);
    } else {
      unable[refusals.front()].push_back(word);
    }
  }
  const std::string again =
      fmt::format("predict --strategy {} --batch {}", flags.out.empty() ? "FILE, which --out writes," : flags.out,
                  question.task().batch(layout));
  if (able.empty()) {
    std::string out = "by no framework that is known here:";
    for (const auto& [why, words] : unable) out += fmt::format(" {} ({});", fmt::join(words, ", "), why);
    out.back() = '.';
    return out + fmt::format(" {} simulates it again", again);
  }
  return fmt::format("by {}: {} --export NAME prints what it is told", fmt::join(able, ", "), again);
}

double node_hours(const LayoutQuestion& question, Seconds step) {
  constexpr double kSamples = 1e6;
  return nodes_of(question) * step.value() / kSecondsPerHour * kSamples / static_cast<double>(question.task().samples);
}

/// Three quarters and a half of them, and so on.
std::vector<int> fewer_nodes(int nodes) {
  std::vector<int> out;
  for (int now = nodes; now > 1; now /= 2)
    for (const int fewer : {3 * now / 4, now / 2})
      if (fewer >= 1 && fewer < (out.empty() ? nodes : out.back())) out.push_back(fewer);
  return out;
}

/// Of its first nodes.
int gpus_of(const Cluster& cluster, int nodes) {
  int gpus = 0;
  for (int node = 0; node < nodes; ++node) gpus += cluster.group_of(node).gpus;
  return gpus;
}

/// The same samples a step on all GPUs of fewer nodes.
void print_cheapest(const LayoutSearchFlags& flags, LayoutRun& whole, const ShownLayout& best, Inputs& inputs) {
  const double price = *flags.price_per_node_hour;
  const auto line = [&](const LayoutQuestion& question, const ShownLayout& shown) {
    const double hours = node_hours(question, shown.step());
    return fmt::format("{} node{}, {}: {:.4g} node-hours, {:.4g} for a million samples; {}", nodes_of(question),
                       nodes_of(question) == 1 ? "" : "s", format_seconds(shown.step()), hours, price * hours,
                       text_of(shown.found.layout, question.task()));
  };
  print_line("fastest", line(whole.question(), best));
  std::string cheapest = line(whole.question(), best);
  double least = node_hours(whole.question(), best.step());
  for (const int nodes : fewer_nodes(nodes_of(whole.question()))) {
    std::optional<LayoutRun> run;
    try {
      run.emplace(flags, gpus_of(whole.question().cluster(), nodes), inputs);
    } catch (const InputError&) {
      continue;  // no mesh divides that
    }
    if (!run->found()) continue;
    const ShownLayout here = run->replayed({run->result().evaluated.front()}, Solver::Native).front();
    const double hours = node_hours(run->question(), here.step());
    if (hours >= least) continue;
    least = hours;
    cheapest = line(run->question(), here);
  }
  print_line("cheapest", cheapest);
}

/// The best that fit, and of each mesh a few only: estimates of one mesh are wrong in the same way. Of those that cost
/// the same on one mesh, which are one plan in other words, the first; and of every kind of parallelism the best, and
/// of those whose layers are split by the rule.
std::vector<EvaluatedLayout> shortlist(const LayoutSearchResult& result, std::size_t most) {
  const int of_mesh = static_cast<int>((most + 2) / 3);
  std::map<std::pair<int, int>, int> taken;
  std::vector<EvaluatedLayout> out;
  for (const EvaluatedLayout& one : result.evaluated) {
    if (out.size() == most || !one.cost.fits()) break;
    const auto is_same = [&](const EvaluatedLayout& other) {
      return other.layout.tensor == one.layout.tensor && other.layout.pipeline == one.layout.pipeline &&
             other.cost.step == one.cost.step;
    };
    if (std::any_of(out.begin(), out.end(), is_same)) continue;
    if (taken[{one.layout.tensor, one.layout.pipeline}]++ < of_mesh) out.push_back(one);
  }
  std::vector<EvaluatedLayout> others = best_of_families(result);
  if (const EvaluatedLayout* rule = best_by_rule(result)) others.push_back(*rule);
  for (const EvaluatedLayout& one : others)
    if (one.cost.fits() &&
        std::none_of(out.begin(), out.end(), [&](const EvaluatedLayout& other) { return other.layout == one.layout; }))
      out.push_back(one);
  return out;
}

void write_table(const LayoutSearchFlags& flags, const LayoutRun& run, const std::vector<ShownLayout>& replayed) {
  std::string text = layout_csv_header() + "\n";
  for (const EvaluatedLayout& one : run.result().evaluated) {
    const auto known = std::find_if(replayed.begin(), replayed.end(),
                                    [&](const ShownLayout& shown) { return shown.found.layout == one.layout; });
    text +=
        layout_csv_row(run.question(), known != replayed.end()
                                           ? *known
                                           : ShownLayout{.found = one, .replayed = {}, .solver = {}, .obstacle = {}}) +
        "\n";
  }
  if (flags.csv == "-") {
    std::cout << text;
  } else {
    write_file(flags.csv, text);
  }
}

/// The fastest replay. A layout that could not be replayed is compared with it by what both are estimated at: estimates
/// tend to be shorter than replays.
ShownLayout best_of(const std::vector<ShownLayout>& shown) {
  const auto is_faster = [](const ShownLayout& a, const ShownLayout& b) {
    if (a.replayed && b.replayed) return a.step() < b.step();
    return a.found.cost.step < b.found.cost.step;
  };
  const ShownLayout* best = nullptr;
  for (const bool replayed : {true, false})
    for (const ShownLayout& one : shown)
      if (one.replayed.has_value() == replayed && (best == nullptr || is_faster(one, *best))) best = &one;
  return *best;
}

[[noreturn]] void refuse(LayoutRun& run) {
  if (run.result().evaluated.empty()) {
    const std::string& why = run.question().first_refusal();
    throw PlanError("no layout is possible; " + (why.empty()
                                                     ? std::string("what space.* leaves of micro-batches, "
                                                                   "experts, context and chunks divides neither "
                                                                   "the samples nor the ranks of any mesh")
                                                     : "the first was refused: " + why));
  }
  const EvaluatedLayout& least = run.result().evaluated.front();
  throw InputError(fmt::format("none of {} layouts fits into memory; closest to it is {}",
                               run.result().evaluated.size(), text_of(least.layout, run.question().task())),
                   fmt::format("it {}: more workers share out more", memory_text(run.question().memory(least.layout))));
}

}  // namespace

void search_for_layout(const LayoutSearchFlags& flags) {
  Inputs inputs;
  std::optional<HeldInterruption> held;
  held.emplace();
  LayoutRun run(flags, flags.request.workers, inputs);
  if (HeldInterruption::signal() != 0)
    end_interrupted(HeldInterruption::signal(),
                    fmt::format("interrupted: {} layouts were estimated", run.result().evaluated.size()));
  if (!run.found()) refuse(run);
  std::vector<ShownLayout> replayed =
      run.replayed(shortlist(run.result(), static_cast<std::size_t>(flags.replays)), Solver::Native);
  ShownLayout best = best_of(replayed);
  // SimGrid simulates every rank, and so refuses jobs of which the native solver simulates a few.
  if (best.replayed)
    if (const ShownLayout again = run.replayed({best.found}, Solver::SimGrid).front(); again.replayed) best = again;
  held.reset();
  if (!flags.out.empty())
    write_file(flags.out, to_yaml(run.question().strategy(best.found.layout), run.question().model()));
  if (!flags.csv.empty()) write_table(flags, run, replayed);
  if (flags.csv == "-") return;
  print_heading(flags, run);
  print_line("best", text_of(best.found.layout, run.question().task()));
  print_line("step", step_text(flags, run.question(), best));
  print_line("memory", memory_text(run.question().memory(best.found.layout)));
  print_line("sends", sent_text(run.question(), best.found.layout));
  print_line("run", told_text(run.question(), flags, best.found.layout));
  print_rule(run, best, replayed);
  std::cout << "The best with tensor parallelism, with a pipeline, with both and with neither:\n";
  print_families(run, best, replayed);
  if (flags.price_per_node_hour) print_cheapest(flags, run, best, inputs);
}

}  // namespace simsync
