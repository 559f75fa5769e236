#include "hw/run/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace simsync {
namespace {

nlohmann::json json_of(const std::vector<MeasuredSpan>& spans) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& s : spans) out.push_back({s.instance.op, s.instance.cell, s.iteration, s.start, s.end});
  return out;
}

std::vector<MeasuredSpan> spans_of(const nlohmann::json& json) {
  std::vector<MeasuredSpan> out;
  for (const auto& s : json)
    out.push_back(
        {{s.at(0).get<OpId>(), s.at(1).get<int>()}, s.at(2).get<int>(), s.at(3).get<double>(), s.at(4).get<double>()});
  return out;
}

}  // namespace

Seconds Measurement::quantile(double share) const {
  std::vector<Seconds> sorted = steps;
  std::sort(sorted.begin(), sorted.end());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

std::string to_text(const AgentRecord& record) {
  return nlohmann::json{{"ends", record.iteration_end},
                        {"spans", json_of(record.spans)},
                        {"checked", record.checked},
                        {"elapsed", record.elapsed},
                        {"processor_time", record.processor_time}}
      .dump();
}

AgentRecord agent_record(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {.iteration_end = json.at("ends").get<std::vector<double>>(),
          .spans = spans_of(json.at("spans")),
          .checked = json.at("checked").get<std::int64_t>(),
          .elapsed = json.at("elapsed").get<double>(),
          .processor_time = json.at("processor_time").get<double>()};
}

std::string to_text(const Measurement& measurement) {
  std::vector<double> steps;
  for (const Seconds s : measurement.steps) steps.push_back(s.value());
  return nlohmann::json{{"steps", steps},
                        {"spans", json_of(measurement.spans)},
                        {"checked", measurement.checked},
                        {"processors", measurement.processors}}
      .dump();
}

Measurement measurement(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  Measurement out;
  for (const double s : json.at("steps").get<std::vector<double>>()) out.steps.emplace_back(s);
  out.spans = spans_of(json.at("spans"));
  out.checked = json.at("checked").get<std::int64_t>();
  out.processors = json.at("processors").get<double>();
  return out;
}

Measurement merge(const std::vector<AgentRecord>& records, int warm_up) {
  Measurement out;
  std::vector<double> ends;
  std::map<std::pair<int, Instance>, MeasuredSpan> spans;
  for (const auto& record : records) {
    ends.resize(std::max(ends.size(), record.iteration_end.size()), 0.0);
    for (std::size_t k = 0; k < record.iteration_end.size(); ++k) ends[k] = std::max(ends[k], record.iteration_end[k]);
    for (const auto& span : record.spans) {
      auto& known = spans.try_emplace({span.iteration, span.instance}, span).first->second;
      // A collective starts with its first rank and ends with its last.
      if (span.start >= 0.0 && (known.start < 0.0 || span.start < known.start)) known.start = span.start;
      known.end = std::max(known.end, span.end);
    }
    out.checked += record.checked;
    if (record.elapsed > 0.0) out.processors += record.processor_time / record.elapsed;
  }
  for (std::size_t k = static_cast<std::size_t>(std::max(1, warm_up)); k < ends.size(); ++k)
    out.steps.emplace_back(ends[k] - ends[k - 1]);
  for (const auto& [key, span] : spans)
    if (span.start >= 0.0 && span.end >= 0.0) out.spans.push_back(span);
  std::sort(out.spans.begin(), out.spans.end(),
            [](const MeasuredSpan& a, const MeasuredSpan& b) { return a.start < b.start; });
  return out;
}

}  // namespace simsync
