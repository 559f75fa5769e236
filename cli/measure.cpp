#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/settings.hpp"
#include "cli/testbed_flags.hpp"
#include "cli/unknown.hpp"
#include "hw/run/as_recorded.hpp"
#include "hw/run/measured_row.hpp"
#include "hw/run/on_testbed.hpp"
#include "hw/run/started_rank.hpp"
#include "hw/run/stolen_time.hpp"
#include "platforms/reader.hpp"
#include "sim/problem/problem.hpp"
#include "sim/timeline/timeline.hpp"
#include "sim/timeline/trace_of.hpp"
#include "strategies/builders.hpp"

namespace simsync {
namespace {

constexpr const char* kTestbed = "testbed";
constexpr const char* kGloo = "gloo";
constexpr const char* kNccl = "nccl";

struct MeasureOptions {
  std::string cluster;
  std::vector<std::string> models, strategies;
  std::vector<int> workers;
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  int hosts = 0;
  int server_hosts = 0;
  std::string rates = "1Gbps";
  std::string queues = "fifo";
  std::string cluster_out;
  std::string csv;
  std::string timeline;
  std::string trace;
  bool resume = false;
  std::string optimizer = "momentum";
  std::string backend = kGloo;
  RunOptions run;
};

/// @throws PlanError when workers or servers are on hosts that were not built.
void expect_hosts(const Plan& plan, const MeasureOptions& options) {
  const int built = options.hosts + options.server_hosts;
  for (const auto* places : {&plan.ranks, &plan.servers})
    for (const Place& place : *places)
      if (place.node >= built)
        throw PlanError(fmt::format("{} workers and {} servers need more than the {} hosts of the testbed",
                                    plan.rank_count(), plan.servers.size(), built));
}

/// The device of the slowest worker may compute for so long without a word to anybody: no reason to give up.
RunOptions patient(RunOptions run, const Problem& problem) {
  double slowest = 0.0;
  for (int rank = 0; rank < problem.plan.rank_count(); ++rank)
    slowest = std::max(slowest, device_slowdown(problem, rank));
  run.timeout_s += slowest * problem.profile.step().value();
  return run;
}

Measurement run_on(const Testbed& testbed, const Problem& problem, const MeasureOptions& options) {
  expect_hosts(problem.plan, options);
  LaunchOptions launch_options = on_testbed(testbed);
  launch_options.run = patient(options.run, problem);
  for (int rank = 0; rank < problem.plan.rank_count(); ++rank)
    launch_options.slowdown.push_back(device_slowdown(problem, rank));
  return launch(problem.plan, launch_options);
}

/// What the hosts are called among the inputs.
std::string cluster_name(const MeasureOptions& options) {
  return options.cluster.empty() ? kTestbed : options.cluster;
}

/// The runner's servers are processes of their own and use one thread for a sum or an update, whatever the framework of
/// the strategy does: the row says so, for whoever predicts it.
void say_what_servers_do(PredictRequest& request) {
  for (const char* option : {"shared_process", "parallel_host_ops"})
    if (has_option(request.strategy, option))
      request.settings.insert(request.settings.begin(), {std::string("strategy.") + option, "false"});
}

std::vector<PredictRequest> requests_of(const MeasureOptions& options) {
  std::vector<PredictRequest> out;
  std::vector<std::string> strategies = options.strategies;
  if (strategies == std::vector<std::string>{"all"}) strategies = known_builders();
  std::vector<int> workers = options.workers;
  if (workers.empty()) workers.push_back(std::max(1, options.hosts));
  for (const auto& model : options.models)
    for (const auto& strategy : strategies)
      for (const int count : workers) {
        PredictRequest request{model, cluster_name(options), strategy, count, {}, parse_settings(options.settings)};
        if (options.batch != 0) request.batch = options.batch;
        say_what_servers_do(request);
        out.push_back(std::move(request));
      }
  return out;
}

Optimizer optimizer_of(const std::string& name) {
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
    if (name == name_of(optimizer)) return optimizer;
  throw InputError("--optimizer " + name + ": expected sgd, momentum or adam");
}

void print_summary(const PredictRequest& request, const Problem& problem, const Measurement& measured) {
  const std::string error =
      measured.vary ? fmt::format("their mean with a standard error of {:.1f} %, ", 100.0 * measured.step_error()) : "";
  std::cout << fmt::format(
                   "{} on {}, {} with {} workers: {} (10 % below {}, 10 % above {}, {} steps, {}{} results checked)\n",
                   problem.model.name(), problem.cluster.name, request.strategy, request.workers,
                   format_seconds(measured.step()), format_seconds(measured.quantile(0.1)),
                   format_seconds(measured.quantile(0.9)), measured.steps.size(), error, measured.checked)
            << std::flush;
  constexpr double kBusy = 0.7;
  const double share = measured.processors / std::max(1U, std::thread::hardware_concurrency());
  if (share > kBusy)
    std::cerr << fmt::format(
        "note: the run kept {:.0f} % of this machine's processors busy: they may have set its pace, not the network\n",
        100.0 * share);
  if (const std::string note = note_of_stolen_time(measured.stolen); !note.empty()) std::cerr << note << '\n';
}

/// What is misspelt is told before the first run. @throws InputError
void check_names(const std::vector<PredictRequest>& requests, Inputs& inputs) {
  for (const PredictRequest& request : requests) {
    try {
      (void)prepare(request, inputs);
    } catch (const PlanError&) {
      // told when its turn comes
    }
  }
}

/// Adds rows and timelines to what the user asked for.
class Report {
public:
  Report(const MeasureOptions& options) : options_(options) {
    if (options.csv.empty()) return;
    file_ = std::make_unique<RowFile>(open_resumable(options.csv, csv_row(measured_header()), options.resume));
    tell_how_to_resume(options.csv);
  }
  [[nodiscard]] std::vector<PredictRequest> left_of(const std::vector<PredictRequest>& requests, Inputs& inputs) const {
    return file_ ? without_row(requests, file_->found(), inputs) : requests;
  }
  void add(const PredictRequest& request, const Problem& problem, const Measurement& measured) {
    if (file_) file_->append(csv_row(measured_cells(request, problem, measured, options_.backend)));
    if (options_.csv != "-") print_summary(request, problem, measured);
    const Prediction recorded = as_recorded(problem.plan, measured);
    if (!options_.timeline.empty())
      write_file(options_.timeline, [&](std::ostream& out) {
        write_timeline(out, {problem.plan, problem.cluster, recorded});
      });
    if (!options_.trace.empty()) write_trace(options_.trace, trace_of(problem.plan, recorded.spans, 0));
  }

private:
  const MeasureOptions& options_;
  std::unique_ptr<RowFile> file_;
};

/// Unlike the processes of a cluster, this one writes all of them.
void announce_outputs(const MeasureOptions& options) {
  announce_output(options.cluster_out, "--cluster-out");
  announce_output(options.csv, "--csv");
  announce_output(options.timeline, "--timeline");
  announce_output(options.trace, "--trace");
  if (!options.csv.empty() && options.csv != "-") announce_output(inputs_file(options.csv), "--csv");
}

/// Every request, one after another, on hosts that are emulated here.
void run_on_testbed(const MeasureOptions& options) {
  announce_outputs(options);
  auto requests = requests_of(options);
  for (const PredictRequest& request : requests)
    if (request.workers > options.hosts)
      throw InputError(fmt::format("--workers {}: the testbed has {} hosts", request.workers, options.hosts));
  Inputs inputs;
  for (const auto& model : options.models) (void)inputs.model(model);
  const Testbed testbed({.hosts = options.hosts,
                         .rates = parse_rates(options.rates),
                         .server_hosts = options.server_hosts,
                         .queues = parse_queues(options.queues)});
  inputs.put(kTestbed, testbed.cluster());
  check_names(requests, inputs);
  if (!options.cluster_out.empty()) write_file(options.cluster_out, to_yaml(testbed.cluster()));
  Report report(options);
  requests = report.left_of(requests, inputs);
  ProgressBar progress(requests.size());
  const AwakeProcessors awake;
  for (const std::string& note : notes_on_timing(awake)) progress.message(note);
  for (const PredictRequest& request : requests) {
    try {
      const Problem problem = for_real_run(prepare(request, inputs));
      report.add(request, problem, run_on(testbed, problem, options));
    } catch (const PlanError& e) {
      if (requests.size() == 1) throw;
      progress.message(fmt::format("skipped: {} with {} workers: {}", request.strategy, request.workers, e.what()));
    }
    progress.advance();
  }
}

/// One request, of which this process, started by mpirun, torchrun or srun, is one worker or server.
void run_as_started(const MeasureOptions& options) {
  const auto started = started_rank([](const char* name) { return std::getenv(name); });
  if (!started)
    throw InputError("--cluster: this process has no rank",
                     "start one per worker and server with mpirun, torchrun or srun, or emulate hosts with --testbed");
  const auto requests = requests_of(options);
  if (requests.size() != 1) throw InputError("--cluster: one model, strategy and number of workers at a time");
  Inputs inputs;
  const Problem problem = for_real_run(prepare(requests.front(), inputs));
  AgentOptions agent = agent_options(*started, problem.plan, patient(options.run, problem));
  if (options.backend == kNccl) agent.devices = make_gpu;
  if (agent.self < problem.plan.rank_count()) agent.slowdown = device_slowdown(problem, agent.self);
  setenv("GRPC_VERBOSITY", "NONE", 1);
  const auto measured = run_agent(problem.plan, agent);
  if (measured) Report(options).add(requests.front(), problem, *measured);
}

void run_measure(MeasureOptions options) {
  options.run.optimizer = optimizer_of(options.optimizer);
  if (options.backend != kGloo && options.backend != kNccl)
    throw InputError("--backend " + options.backend + ": expected gloo or nccl");
  if (options.backend == kNccl && options.cluster.empty())
    throw InputError("--backend nccl needs the hosts of a real cluster: --cluster",
                     "emulated hosts have no GPUs of their own");
  if (options.resume && (options.csv.empty() || options.csv == "-"))
    throw InputError("--resume needs the file to go on with: --csv FILE");
  for (const auto& [flag, file] : {std::pair{"--timeline", options.timeline}, {"--trace", options.trace}})
    if (!file.empty() && requests_of(options).size() != 1)
      throw InputError(fmt::format("{} is for one model, strategy and number of workers", flag));
  if (!options.trace.empty()) options.run.recorded = options.run.warm_up + options.run.iterations;
  if (options.cluster.empty()) {
    run_on_testbed(options);
  } else {
    run_as_started(options);
  }
}

void add_hosts(CLI::App& command, MeasureOptions& options) {
  auto* cluster = command.add_option(
      "--cluster", options.cluster,
      "Run on the hosts of this cluster: started by mpirun, torchrun or srun, a process per worker and server");
  auto* testbed =
      command.add_option("--testbed", options.hosts, "Hosts to emulate in network namespaces of this machine")
          ->check(whole_number(1, kMaxTestbedHosts));
  command.add_option("--server-hosts", options.server_hosts, "Hosts without a device besides them")
      ->check(whole_number(0, kMaxTestbedHosts))
      ->needs(testbed);
  command.add_option("--rate", options.rates, "Rate of each host's link: one for all, or one per host (1Gbps,500Mbps)")
      ->capture_default_str()
      ->needs(testbed);
  add_queues(command, options.queues)->needs(testbed);
  command
      .add_option("--cluster-out", options.cluster_out, "Write the cluster that was built to this file, for predict")
      ->check(output_file_of_one("--cluster-out"));
  testbed->excludes(cluster);
}

void add_outputs(CLI::App& command, MeasureOptions& options) {
  command.add_option("--csv", options.csv, "Write rows to this file, or to standard output with '-'")
      ->check(output_file_of_one("--csv"));
  command.add_option("--timeline", options.timeline, "Write what happened when to this file, for ui.perfetto.dev")
      ->check(output_file_of_one("--timeline"));
  command
      .add_option("--trace", options.trace,
                  "Write every step of the first worker, operation by operation, to this file, for import trace")
      ->check(output_file_of_one("--trace"));
  command.add_flag("--resume", options.resume, "Keep the rows that the file has and add the others");
}

}  // namespace

void setup_measure(CLI::App& app, Outcome&) {
  auto options = std::make_shared<MeasureOptions>();
  auto* command = app.add_subcommand(kMeasure, kAboutMeasure);
  const auto list = [&](const char* flag, auto& into, const char* text) {
    return command->add_option(flag, into, text)->delimiter(',');
  };
  list("--model", options->models, "Models, separated by commas")->required();
  list("--strategy", options->strategies, "Strategies; 'all' stands for every builder")->required();
  list("--workers", options->workers, "Numbers of workers (default: all hosts of the testbed)")
      ->check(whole_number(1, 1'000'000));
  command->add_option("--batch", options->batch, "Samples per worker and step (default: each model's)")
      ->check(whole_number(1, 100'000'000));
  command->add_option("--set", options->settings, "key=value, again and again ('simsync list settings')")
      ->check(key_and_value());
  add_hosts(*command, *options);
  command->add_option("--steps", options->run.iterations, "Steps that are timed")
      ->check(whole_number(1, 10'000))
      ->capture_default_str();
  command->add_option("--warm-up", options->run.warm_up, "Steps before them")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--backend", options->backend,
                   "gloo: compute by deadlines, collectives between CPUs; nccl: kernels and collectives on GPUs")
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "What parameter servers apply: sgd, momentum or adam")
      ->capture_default_str();
  command
      ->add_option("--timeout", options->run.timeout_s,
                   "Seconds without progress, beyond what a step computes, after which a run has failed")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  add_outputs(*command, *options);
  command->callback([options] {
    if (options->cluster.empty() && options->hosts == 0) throw CLI::RequiredError("--testbed or --cluster");
    run_measure(*options);
  });
}

}  // namespace simsync
