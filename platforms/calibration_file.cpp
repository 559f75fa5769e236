// Calibrations as files.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/yaml.hpp"
#include "base/yaml_text.hpp"
#include "platforms/calibration.hpp"
#include "platforms/measured_ratios.hpp"

namespace simsync {
namespace {

constexpr std::size_t kMostParameters = 200;

std::string read_date(const yaml::Node& node) {
  if (!node) return {};
  std::string text = node.text();
  if (!is_date(text)) node.fail(fmt::format("expected a date such as 2026-01-31, got '{}'", text));
  return text;
}

CalibratedParameter read_parameter(const yaml::Node& node) {
  CalibratedParameter out;
  auto m = node.mapping();
  if (const auto key = m.require("key")) out.key = key.text();
  if (const auto value = m.require("value")) {
    const std::string text = value.text();
    const auto parsed = parse_scaled(text);
    if (parsed) {
      out.value = parsed->value;
      out.scale.dimension = parsed->dimension;
    } else {
      value.fail(fmt::format("expected a number with its unit, such as 8Gbps, 20us, 64KiB or 0.95, got '{}'", text));
    }
  }
  if (const auto scale = m.require("scale")) {
    out.scale.logarithmic = scale.choice({"linear", "log"}) == 1;
    if (out.scale.logarithmic && out.value <= 0.0) scale.fail("only a value above 0 has a logarithmic scale");
  }
  out.deviation = m.require("deviation").number({0.0, 1e15});
  return out;
}

/// No vector of numbers has a negative variance: Cholesky's decomposition exists (with a little room for rounding).
bool is_correlation(const std::vector<std::vector<double>>& matrix) {
  constexpr double kRoom = 1e-6;
  auto root = matrix;
  for (std::size_t i = 0; i < root.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double left = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) left -= root[i][k] * root[j][k];
      if (i == j) {
        if (left < -kRoom) return false;
        root[i][i] = std::sqrt(std::max(left, kRoom * kRoom));
      } else {
        root[i][j] = left / root[j][j];
      }
    }
  }
  return true;
}

/// A triangle: row i has the correlations with the parameters up to and including number i.
std::vector<std::vector<double>> read_correlation(const yaml::Node& node, std::size_t count) {
  std::vector<std::vector<double>> out(count, std::vector<double>(count, 0.0));
  for (std::size_t i = 0; i < count; ++i) out[i][i] = 1.0;
  if (!node) return out;
  const auto rows = node.items();
  if (rows.size() != count) {
    node.fail(fmt::format("expected a row for each of the {} parameters, got {}", count, rows.size()));
    return out;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto cells = rows[i].items();
    if (cells.size() != i + 1) {
      rows[i].fail(fmt::format("expected {} numbers (parameter {} with those up to itself), got {}", i + 1, i + 1,
                               cells.size()));
      continue;
    }
    for (std::size_t j = 0; j <= i; ++j) out[i][j] = out[j][i] = cells[j].number({-1.0, 1.0});
    if (out[i][i] != 1.0) cells[i].fail("expected 1: the correlation of a parameter with itself");
  }
  if (!is_correlation(out)) node.fail("no set of quantities has these correlations: a variance would be negative");
  return out;
}

void read_parameters(const yaml::Node& node, Calibration& out) {
  const auto items = node.items();
  if (items.size() > kMostParameters)
    node.fail(fmt::format("{} parameters: expected at most {}", items.size(), kMostParameters));
  for (std::size_t i = 0; i < std::min(items.size(), kMostParameters); ++i) {
    out.parameters.push_back(read_parameter(items[i]));
    const auto same = [&](const CalibratedParameter& p) { return p.key == out.parameters.back().key; };
    if (std::any_of(out.parameters.begin(), out.parameters.end() - 1, same))
      items[i].fail(fmt::format("a second value for '{}'", out.parameters.back().key));
  }
}

void read(const yaml::Node& root, Calibration& out) {
  auto top = root.mapping();
  (void)top.require("schema").choice({"simsync/calibration/v1"});
  if (const auto node = top.require("cluster")) out.cluster = node.text();
  out.date = read_date(top.require("date"));
  top.maybe("sources", [&](const yaml::Node& node) {
    for (const auto& item : node.items()) out.sources.push_back(item.text());
  });
  top.maybe("valid_for", [&](const yaml::Node& node) {
    for (const auto& item : node.items()) out.valid_for.push_back(item.text());
  });
  out.rows = static_cast<std::size_t>(top.require("rows").integer(0, 1'000'000'000));
  top.maybe("residuals", [&](const yaml::Node& node) {
    auto m = node.mapping();
    out.residuals.rms_pct = m.require("rms_pct").number(yaml::kNonNegative);
    out.residuals.median_pct = m.require("median_pct").number(yaml::kNonNegative);
    out.residuals.worst_pct = m.require("worst_pct").number(yaml::kNonNegative);
  });
  if (const auto node = top.optional("repeat_pct")) out.repeat_pct = node.number(yaml::kNonNegative);
  top.maybe("assumed", [&](const yaml::Node& node) {
    for (const auto& [key, value] : node.entries()) out.assumed.emplace_back(key, value.text());
  });
  if (const auto node = top.require("parameters")) read_parameters(node, out);
  out.correlation = read_correlation(top.optional("correlation"), out.parameters.size());
  if (const auto node = top.optional("measured")) out.measured = read_measured_ratios(node);
}

}  // namespace

bool is_date(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  const auto number = [&](std::size_t at, std::size_t digits) { return std::stoi(text.substr(at, digits)); };
  return std::chrono::year_month_day{std::chrono::year{number(0, 4)},
                                     std::chrono::month{static_cast<unsigned>(number(5, 2))},
                                     std::chrono::day{static_cast<unsigned>(number(8, 2))}}
      .ok();
}

Calibration parse_calibration(const std::string& text, const std::string& file) {
  const auto document = yaml::Document::parse(text, file);
  Calibration out;
  out.file = file;
  read(document.root(), out);
  document.finish();
  return out;
}

Calibration load_calibration(const std::string& path) {
  return parse_calibration(read_file(path), path);
}

std::string to_yaml(const Calibration& c) {
  std::string out = "schema: simsync/calibration/v1\n";
  out += fmt::format("cluster: {}\ndate: {}\n", yaml_name(c.cluster), c.date);
  if (!c.sources.empty()) out += "sources:\n";
  for (const auto& source : c.sources) out += fmt::format("  - {}\n", yaml_quoted(source));
  if (!c.valid_for.empty()) out += "valid_for:\n";
  for (const auto& what : c.valid_for) out += fmt::format("  - {}\n", yaml_quoted(what));
  out += fmt::format("rows: {}\n", c.rows);
  out +=
      fmt::format("residuals: {{rms_pct: {}, median_pct: {}, worst_pct: {}}}\n", format_shortest(c.residuals.rms_pct),
                  format_shortest(c.residuals.median_pct), format_shortest(c.residuals.worst_pct));
  if (c.repeat_pct > 0.0) out += fmt::format("repeat_pct: {}\n", format_shortest(c.repeat_pct));
  if (!c.assumed.empty()) out += "assumed:\n";
  for (const auto& [key, value] : c.assumed)
    out += fmt::format("  {}: {}\n", yaml_name(key), parse_scaled(value) ? value : yaml_name(value));
  out += c.parameters.empty() ? "parameters: []\n" : "parameters:\n";
  for (const auto& p : c.parameters)
    out +=
        fmt::format("  - {{key: {}, value: {}, scale: {}, deviation: {}}}\n", yaml_name(p.key),
                    p.scale.exact_text(p.value), p.scale.logarithmic ? "log" : "linear", format_shortest(p.deviation));
  if (!c.parameters.empty()) out += "correlation:\n";
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    std::vector<std::string> cells;
    for (std::size_t j = 0; j <= i; ++j) cells.push_back(format_shortest(c.correlation[i][j]));
    out += fmt::format("  - [{}]\n", fmt::join(cells, ", "));
  }
  return out + measured_ratios_text(c.measured, 0);
}

}  // namespace simsync
