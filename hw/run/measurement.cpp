#include "hw/run/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/timeline/worker_pace.hpp"

namespace simsync {
namespace {

nlohmann::json json_of(const std::vector<MeasuredSpan>& spans) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& s : spans) out.push_back({s.instance.op, s.instance.group, s.iteration, s.start, s.end});
  return out;
}

std::vector<MeasuredSpan> spans_of(const nlohmann::json& json) {
  std::vector<MeasuredSpan> out;
  for (const auto& s : json)
    out.push_back(
        {{s.at(0).get<OpId>(), s.at(1).get<int>()}, s.at(2).get<int>(), s.at(3).get<double>(), s.at(4).get<double>()});
  return out;
}

std::vector<double> values_of(const std::vector<Seconds>& times) {
  std::vector<double> out;
  for (const Seconds s : times) out.push_back(s.value());
  return out;
}

std::vector<Seconds> times_of(const nlohmann::json& json) {
  std::vector<Seconds> out;
  for (const double s : json.get<std::vector<double>>()) out.emplace_back(s);
  return out;
}

/// By iteration: the least or the largest over all agents; negative where there is none.
std::vector<double> over_agents(const std::vector<AgentRecord>& records, std::vector<double> AgentRecord::*times,
                                bool first) {
  std::vector<double> out;
  for (const auto& record : records) {
    const auto& own = record.*times;
    out.resize(std::max(out.size(), own.size()), -1.0);
    for (std::size_t k = 0; k < own.size(); ++k)
      if (own[k] >= 0.0 && (out[k] < 0.0 || (own[k] < out[k]) == first)) out[k] = own[k];
  }
  return out;
}

/// Ends of steps of asynchronous ranks, as long as all of them are at work.
void find_pace(const std::vector<AgentRecord>& records, Measurement& out) {
  std::vector<std::pair<double, std::size_t>> ends;
  std::size_t ranks = 0;
  double all_at_work = std::numeric_limits<double>::infinity();
  for (const auto& record : records) {
    if (record.step_ends.empty()) continue;
    for (const double end : record.step_ends) ends.emplace_back(end, ranks);
    all_at_work = std::min(all_at_work, record.step_ends.back());
    ++ranks;
  }
  if (ranks == 0) return;
  std::sort(ends.begin(), ends.end());
  WorkerPace pace(ranks);
  for (const auto& [end, rank] : ends)
    if (end <= all_at_work) pace.note(rank, Seconds{end});
  out.rank_steps = pace.step_of_each();
  if (out.has_backups) return;
  out.steps = pace.batches();
  out.staleness = pace.staleness();
  if (out.steps.empty()) out.steps = {out.step()};
}

}  // namespace

Seconds Measurement::step() const {
  if (!rank_steps.empty() && !has_backups) {
    double rate = 0.0;
    for (const Seconds step : rank_steps) rate += 1.0 / step.value();
    return Seconds{static_cast<double>(rank_steps.size()) / rate};
  }
  if (!vary) return quantile(0.5);
  double sum = 0.0;
  for (const Seconds step : steps) sum += step.value();
  return Seconds{sum / static_cast<double>(steps.size())};
}

double Measurement::step_error() const {
  if (!vary) return 0.0;
  std::vector<Seconds> ends{Seconds{0.0}};
  for (const Seconds step : steps) ends.push_back(ends.back() + step);
  return relative_error(ends, 1);
}

Seconds quantile_of(std::vector<Seconds> times, double share) {
  std::sort(times.begin(), times.end());
  const double at = share * static_cast<double>(times.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, times.size() - 1);
  return times[below] + (at - std::floor(at)) * (times[above] - times[below]);
}

std::string to_text(const AgentRecord& record) {
  return nlohmann::json{{"starts", record.iteration_start},
                        {"ends", record.iteration_end},
                        {"step_ends", record.step_ends},
                        {"global_step_ends", record.global_step_ends},
                        {"timed", record.timed},
                        {"spans", json_of(record.spans)},
                        {"checked", record.checked},
                        {"elapsed", record.elapsed},
                        {"processor_time", record.processor_time}}
      .dump();
}

AgentRecord agent_record(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {.iteration_start = json.at("starts").get<std::vector<double>>(),
          .iteration_end = json.at("ends").get<std::vector<double>>(),
          .step_ends = json.at("step_ends").get<std::vector<double>>(),
          .global_step_ends = json.at("global_step_ends").get<std::vector<double>>(),
          .timed = json.at("timed").get<std::vector<double>>(),
          .spans = spans_of(json.at("spans")),
          .checked = json.at("checked").get<std::int64_t>(),
          .elapsed = json.at("elapsed").get<double>(),
          .processor_time = json.at("processor_time").get<double>()};
}

std::string to_text(const Measurement& measurement) {
  return nlohmann::json{{"steps", values_of(measurement.steps)},
                        {"active", values_of(measurement.active)},
                        {"timed", values_of(measurement.timed)},
                        {"spans", json_of(measurement.spans)},
                        {"rank_steps", values_of(measurement.rank_steps)},
                        {"staleness", measurement.staleness},
                        {"has_backups", measurement.has_backups},
                        {"vary", measurement.vary},
                        {"checked", measurement.checked},
                        {"processors", measurement.processors}}
      .dump();
}

Measurement measurement(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  Measurement out;
  out.steps = times_of(json.at("steps"));
  out.active = times_of(json.at("active"));
  out.timed = times_of(json.at("timed"));
  out.spans = spans_of(json.at("spans"));
  out.rank_steps = times_of(json.at("rank_steps"));
  out.staleness = json.at("staleness").get<std::vector<double>>();
  out.has_backups = json.at("has_backups").get<bool>();
  out.vary = json.at("vary").get<bool>();
  out.checked = json.at("checked").get<std::int64_t>();
  out.processors = json.at("processors").get<double>();
  return out;
}

Measurement merge(const std::vector<AgentRecord>& records, int warm_up, bool vary) {
  Measurement out;
  out.vary = vary;
  const auto starts = over_agents(records, &AgentRecord::iteration_start, true);
  // A late rank ends its part of a step after it is over.
  out.has_backups = !records.empty() && !records.front().global_step_ends.empty();
  const auto ends =
      out.has_backups ? records.front().global_step_ends : over_agents(records, &AgentRecord::iteration_end, false);
  const auto timed = over_agents(records, &AgentRecord::timed, false);
  std::map<std::pair<int, Instance>, MeasuredSpan> spans;
  for (const auto& record : records) {
    for (const auto& span : record.spans) {
      if (static_cast<std::size_t>(span.iteration) + 1 == ends.size()) continue;
      auto& known = spans.try_emplace({span.iteration, span.instance}, span).first->second;
      // A collective starts with its first rank and ends with its last.
      if (span.start >= 0.0 && (known.start < 0.0 || span.start < known.start)) known.start = span.start;
      known.end = std::max(known.end, span.end);
    }
    out.checked += record.checked;
    if (record.elapsed > 0.0) out.processors += record.processor_time / record.elapsed;
  }
  for (std::size_t k = static_cast<std::size_t>(std::max(1, warm_up)); k + 1 < ends.size(); ++k) {
    out.steps.emplace_back(ends[k] - ends[k - 1]);
    out.active.emplace_back(ends[k] - std::max(ends[k - 1], starts[k]));
    out.timed.emplace_back(timed[k]);
  }
  find_pace(records, out);
  for (const auto& [key, span] : spans)
    if (span.start >= 0.0 && span.end >= 0.0) out.spans.push_back(span);
  std::sort(out.spans.begin(), out.spans.end(),
            [](const MeasuredSpan& a, const MeasuredSpan& b) { return a.start < b.start; });
  return out;
}

}  // namespace simsync
