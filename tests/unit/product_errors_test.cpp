// How far product_time is off on measured products (validate/reference/matrix_products.csv): the table of
// models/README.md (Products), made again. Constants are chosen by grid without what they are tried on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "models/product_time.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Peaks of data sheets in 16 bits, dense: TFLOPS, GB/s and the half_efficiency of devices.yaml in GFLOP; what it says
/// of A100 and H100, and for the others what it says of H100.
struct Sheet {
  double peak;
  double memory;
  double half_efficiency;
};
const std::map<std::string, Sheet> kSheets = {{"A100-SXM4-80GB", {312, 2039, 2}},
                                              {"H100-SXM5-80GB", {989, 3350, 4}},
                                              {"B200-SXM", {2250, 8000, 4}},
                                              {"RTX-PRO-6000-Server", {468, 1597, 4}}};

Roofline roofline_of(const std::string& device) {
  const Sheet& sheet = kSheets.at(device);
  return {.peak = FlopsPerSecond{sheet.peak * 1e12},
          .memory = BytesPerSecond{sheet.memory * 1e9},
          .launch = Seconds{4e-6},
          .compute_efficiency = 0.5,
          .memory_efficiency = 0.8,
          .half_efficiency = Flops{sheet.half_efficiency * 1e9},
          .element_bytes = 2.0};
}

struct Row {
  std::string source;
  std::string device;
  std::string model;  ///< empty in grids
  std::string layer;
  std::int64_t shards = 1;
  MatrixProduct product;
  double seconds = 0.0;

  [[nodiscard]] std::string table() const { return source + " " + device; }
  [[nodiscard]] bool trains() const { return product.rows >= 512; }
};

std::vector<Row> read_rows() {
  const auto table = CsvTable::load(data_folder("validate") + "/reference/matrix_products.csv");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto whole = [&](const char* column) {
      return static_cast<std::int64_t>(table.number(i, column).value_or(1));
    };
    rows.push_back({.source = table.cell(i, "source"),
                    .device = table.cell(i, "device"),
                    .model = table.cell(i, "model"),
                    .layer = table.cell(i, "layer"),
                    .shards = whole("shards"),
                    .product = {.rows = whole("rows"), .inner = whole("inner"), .columns = whole("columns")},
                    .seconds = 1e-6 * table.number(i, "time_us").value()});
  }
  return rows;
}

using Curve = std::function<double(const Row&)>;

/// Something measured, and its error under every point of a grid of constants.
struct Sample {
  Row row;
  std::int64_t parts = 1;
  Row whole;  ///< that `row` is one of `parts` of, where slowdowns are compared

  /// Predicted over measured, less 1: of the slowdown, or of the time where there are no parts.
  [[nodiscard]] double error(const Curve& curve) const {
    const double off = curve(row) / row.seconds;
    return std::abs((parts == 1 ? off : off / (curve(whole) / whole.seconds)) - 1.0);
  }
};
using Samples = std::vector<Sample>;

/// Parts of a model's layer beside the whole layer; in a grid, where there is no model, two shapes of which one is part
/// of the other, at least 128 long.
Samples read_pairs() {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;
  const auto key_of = [](const Row& row, std::int64_t columns, std::int64_t inner) {
    return Key{row.table(), row.model, row.layer, row.product.rows, columns, inner};
  };
  const std::vector<Row> rows = read_rows();
  std::map<Key, const Row*> known;
  for (const Row& row : rows) known.emplace(key_of(row, row.product.columns, row.product.inner), &row);
  Samples pairs;
  for (const Row& row : rows)
    for (const std::int64_t parts : {2, 4, 8})
      for (const bool by_columns : {true, false}) {
        const bool is_grid = row.model.empty();
        if (is_grid ? std::min(row.product.columns, row.product.inner) < 128 : row.shards != parts) continue;
        const std::int64_t columns = row.product.columns * (by_columns ? parts : 1);
        const std::int64_t inner = row.product.inner * (by_columns ? 1 : parts);
        const auto whole = known.find(key_of(row, columns, inner));
        if (whole != known.end() && whole->second->shards == 1) pairs.push_back({row, parts, *whole->second});
      }
  return pairs;
}

/// The curve of estimate_layer: by work alone.
double by_work(const Row& row, const Roofline& roofline) {
  const MatrixProduct& p = row.product;
  const double work = p.flops() + roofline.half_efficiency.value();
  const auto elements = static_cast<double>(p.rows * p.inner + p.inner * p.columns + p.rows * p.columns);
  return std::max(work / (roofline.peak.value() * roofline.compute_efficiency),
                  roofline.element_bytes * elements / (roofline.memory.value() * roofline.memory_efficiency)) +
         roofline.launch.value();
}

double by_shape(const Row& row, const Roofline& roofline) {
  return product_time(row.product, 1, roofline).forward.value();
}

/// Errors by point of the grid and sample.
using Grid = std::vector<std::vector<double>>;

void add_point(Grid& grid, const Samples& samples, const Curve& curve) {
  std::vector<double>& errors = grid.emplace_back();
  for (const Sample& sample : samples) errors.push_back(sample.error(curve));
}

Grid grid_of_work(const Samples& samples, const std::vector<double>& efficiencies) {
  Grid grid;
  for (const double efficiency : efficiencies)
    for (const double gflop : {0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0})
      add_point(grid, samples, [=](const Row& row) {
        Roofline roofline = roofline_of(row.device);
        roofline.compute_efficiency = efficiency;
        roofline.half_efficiency = Flops{gflop * 1e9};
        return by_work(row, roofline);
      });
  return grid;
}

Grid grid_of_shape(const Samples& samples, const std::vector<double>& efficiencies) {
  Grid grid;
  for (const double efficiency : efficiencies)
    for (const double area : {50e3, 100e3, 150e3, 200e3, 250e3, 300e3, 400e3, 500e3, 700e3})
      for (const double depth : {0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 250.0})
        add_point(grid, samples, [=](const Row& row) {
          Roofline roofline = roofline_of(row.device);
          roofline.compute_efficiency = efficiency;
          roofline.half_area = area;
          roofline.half_depth = depth;
          return by_shape(row, roofline);
        });
  return grid;
}

/// What compute_efficiency is where slowdowns are compared, and what it may be where times are.
const std::vector<double> kOfDevices = {0.5};
const std::vector<double> kAny = {0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95};

using Choice = std::function<bool(const Sample&)>;

/// Mean error in percent of the samples that are chosen, tables counting equally.
double mean_pct(const Samples& samples, const std::vector<double>& errors, const Choice& is_chosen) {
  std::map<std::string, std::pair<double, int>> tables;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!is_chosen(samples[i])) continue;
    auto& [sum, count] = tables[samples[i].row.table()];
    sum += errors[i];
    ++count;
  }
  double sum = 0.0;
  for (const auto& [name, table] : tables) sum += table.first / table.second;
  return 100.0 * sum / static_cast<double>(tables.size());
}

/// The errors under the constants that are best, at training sizes, for the samples that are chosen.
const std::vector<double>& best_for(const Samples& samples, const Grid& grid, const Choice& is_chosen) {
  const auto trains = [&](const Sample& sample) { return sample.row.trains() && is_chosen(sample); };
  std::vector<double> means;
  for (const std::vector<double>& errors : grid) means.push_back(mean_pct(samples, errors, trains));
  return grid[static_cast<std::size_t>(std::min_element(means.begin(), means.end()) - means.begin())];
}

using Group = std::string (*)(const Sample&);

/// Of every sample the error under the constants of all others that are in none of its groups.
std::vector<double> left_out(const Samples& samples, const Grid& grid, const std::vector<Group>& groups) {
  std::map<std::string, std::vector<std::size_t>> tested;
  for (std::size_t i = 0; i < samples.size(); ++i) tested[groups.front()(samples[i])].push_back(i);
  std::vector<double> out(samples.size());
  for (const auto& [name, members] : tested) {
    std::set<std::string> known;
    for (const std::size_t i : members)
      for (const Group& group : groups) known.insert(group(samples[i]));
    const auto is_other = [&](const Sample& sample) {
      return std::none_of(groups.begin(), groups.end(), [&](const Group& g) { return known.contains(g(sample)); });
    };
    const std::vector<double> errors = best_for(samples, grid, is_other);
    for (const std::size_t i : members) out[i] = errors[i];
  }
  return out;
}

std::string model_of(const Sample& sample) {
  return "model " + sample.row.model;
}
/// Another model's part of the same shape tells what its time is.
std::string shape_of(const Sample& sample) {
  const MatrixProduct& product = sample.row.product;
  return fmt::format("{} x {} of {}", product.inner, product.columns, sample.parts);
}
std::string degree_of(const Sample& sample) {
  return fmt::format("{} parts", std::max(sample.parts, sample.row.shards));
}
std::string device_of(const Sample& sample) {
  return sample.row.device;
}
std::string source_of(const Sample& sample) {
  return sample.row.source;
}

std::vector<double> errors_of(const Samples& samples, const Curve& curve) {
  Grid grid;
  add_point(grid, samples, curve);
  return grid.front();
}

bool anything(const Sample& /*sample*/) {
  return true;
}

/// Of one table, at training sizes or below.
Choice in(const std::string& table, bool trains) {
  return [=](const Sample& sample) { return sample.row.table() == table && sample.row.trains() == trains; };
}

/// Half a unit of what models/README.md prints.
auto prints(double pct) {
  return WithinAbs(pct, 0.05);
}

}  // namespace

TEST_CASE("slowdowns of cut products by work and by shape are as far off as the page says", "[models][product]") {
  const Samples pairs = read_pairs();
  const std::vector<double> none = errors_of(pairs, [](const Row& row) { return row.product.flops(); });
  const std::vector<double> device_file =
      errors_of(pairs, [](const Row& row) { return by_work(row, roofline_of(row.device)); });
  const std::vector<double> work = left_out(pairs, grid_of_work(pairs, kOfDevices), {device_of});
  const std::vector<double> shape = left_out(pairs, grid_of_shape(pairs, kOfDevices), {device_of});
  struct Line {
    const char* table;
    bool trains;
    std::ptrdiff_t pairs;
    double none, device_file, work, shape;
  };
  const std::vector<Line> lines = {{"vidur A100-SXM4-80GB", true, 276, 8.1, 7.9, 7.2, 8.1},
                                   {"vidur H100-SXM5-80GB", true, 180, 14.0, 8.4, 10.8, 10.7},
                                   {"trtllm A100-SXM4-80GB", true, 128, 16.9, 12.9, 8.9, 6.0},
                                   {"trtllm H100-SXM5-80GB", true, 136, 21.8, 16.2, 11.5, 7.1},
                                   {"trtllm B200-SXM", true, 136, 26.3, 17.3, 12.4, 10.2},
                                   {"trtllm RTX-PRO-6000-Server", true, 136, 18.9, 18.9, 11.3, 8.5},
                                   {"vllm A100-SXM4-80GB", true, 12, 17.9, 15.6, 12.6, 9.0},
                                   {"vllm H100-SXM5-80GB", true, 12, 21.5, 15.9, 11.0, 6.9},
                                   {"vidur A100-SXM4-80GB", false, 168, 18.8, 17.2, 10.3, 10.2},
                                   {"vidur H100-SXM5-80GB", false, 120, 21.9, 12.7, 8.7, 8.1}};
  for (const Line& line : lines) {
    INFO(line.table << (line.trains ? ", 512 rows and more" : ", fewer rows"));
    const Choice here = in(line.table, line.trains);
    CHECK(std::count_if(pairs.begin(), pairs.end(), here) == line.pairs);
    CHECK_THAT(mean_pct(pairs, none, here), prints(line.none));
    CHECK_THAT(mean_pct(pairs, device_file, here), prints(line.device_file));
    CHECK_THAT(mean_pct(pairs, work, here), prints(line.work));
    CHECK_THAT(mean_pct(pairs, shape, here), prints(line.shape));
  }
}

TEST_CASE("the constants of cut products hold for what they were not chosen from", "[models][product]") {
  const Samples pairs = read_pairs();
  const Grid work = grid_of_work(pairs, kOfDevices);
  const Grid shape = grid_of_shape(pairs, kOfDevices);
  const auto trains = [](const Sample& sample) { return sample.row.trains(); };
  const std::vector<double> built_in =
      errors_of(pairs, [](const Row& row) { return by_shape(row, roofline_of(row.device)); });
  // What is built in is round, and as good as the best of the grid.
  CHECK_THAT(mean_pct(pairs, built_in, trains), prints(8.1));
  CHECK_THAT(mean_pct(pairs, best_for(pairs, shape, anything), trains), prints(8.0));
  CHECK_THAT(mean_pct(pairs, best_for(pairs, work, anything), trains), prints(10.7));

  const auto left = [&](const Grid& grid, const std::vector<Group>& groups) { return left_out(pairs, grid, groups); };
  CHECK_THAT(mean_pct(pairs, left(work, {degree_of}), trains), prints(10.7));
  CHECK_THAT(mean_pct(pairs, left(shape, {degree_of}), trains), prints(8.4));
  CHECK_THAT(mean_pct(pairs, left(work, {source_of}), trains), prints(10.7));
  CHECK_THAT(mean_pct(pairs, left(shape, {source_of}), trains), prints(8.3));
  // Models are those of vidur; a part of the same shape in another model is left out, too.
  const auto models = [](const Sample& sample) { return sample.row.trains() && !sample.row.model.empty(); };
  CHECK_THAT(mean_pct(pairs, left(work, {model_of, shape_of}), models), prints(9.0));
  CHECK_THAT(mean_pct(pairs, left(shape, {model_of, shape_of}), models), prints(9.2));
}

TEST_CASE("times of products under constants without their model or their degree", "[models][product]") {
  std::map<std::string, Samples> tables;
  for (const Row& row : read_rows()) tables[row.table()].push_back({row, 1, {}});
  struct Line {
    const char* table;
    double work_model, shape_model, work_degree, shape_degree, work_few_rows, shape_few_rows;
  };
  for (const Line& line : {Line{"vidur A100-SXM4-80GB", 7.9, 6.8, 7.3, 6.9, 13.5, 8.3},
                           Line{"vidur H100-SXM5-80GB", 8.7, 9.0, 8.8, 9.3, 10.5, 8.5}}) {
    INFO(line.table);
    const Samples& rows = tables.at(line.table);
    const Grid work = grid_of_work(rows, kAny);
    const Grid shape = grid_of_shape(rows, kAny);
    const Choice many = in(line.table, true);
    const Choice few = in(line.table, false);
    CHECK_THAT(mean_pct(rows, left_out(rows, work, {model_of, shape_of}), many), prints(line.work_model));
    CHECK_THAT(mean_pct(rows, left_out(rows, shape, {model_of, shape_of}), many), prints(line.shape_model));
    CHECK_THAT(mean_pct(rows, left_out(rows, work, {degree_of}), many), prints(line.work_degree));
    CHECK_THAT(mean_pct(rows, left_out(rows, shape, {degree_of}), many), prints(line.shape_degree));
    CHECK_THAT(mean_pct(rows, left_out(rows, work, {model_of, shape_of}), few), prints(line.work_few_rows));
    CHECK_THAT(mean_pct(rows, left_out(rows, shape, {model_of, shape_of}), few), prints(line.shape_few_rows));
  }
}
