#include "strategies/search/boosted_trees.hpp"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace simsync::detail {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

void expect_ok(int status) {
  if (status != 0) throw std::invalid_argument(XGBGetLastError());
}

class Rows {
public:
  explicit Rows(const TreeRows& rows) {
    expect_ok(XGDMatrixCreateFromMat(rows.values.data(), rows.labels.size(), rows.width, kMissing, &handle_));
    expect_ok(XGDMatrixSetFloatInfo(handle_, "label", rows.labels.data(), rows.labels.size()));
    expect_ok(XGDMatrixSetUIntInfo(handle_, "group", rows.groups.data(), rows.groups.size()));
  }
  ~Rows() { XGDMatrixFree(handle_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  [[nodiscard]] DMatrixHandle get() const { return handle_; }

private:
  DMatrixHandle handle_ = nullptr;
};

class XgBoost final : public BoostedTrees {
public:
  explicit XgBoost(const std::string& saved) {
    if (saved.empty()) return;
    create(nullptr);
    expect_ok(XGBoosterLoadModelFromBuffer(handle_, saved.data(), saved.size()));
    expect_ok(XGBoosterBoostedRounds(handle_, &trees_));
  }
  ~XgBoost() override { XGBoosterFree(handle_); }
  XgBoost(const XgBoost&) = delete;
  XgBoost& operator=(const XgBoost&) = delete;

  void grow(const TreeRows& rows, int trees) override {
    const Rows matrix(rows);
    if (handle_ == nullptr) create(matrix.get());
    for (int i = 0; i < trees; ++i) expect_ok(XGBoosterUpdateOneIter(handle_, trees_++, matrix.get()));
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    const std::vector<float> row(features.begin(), features.end());
    const std::string values = fmt::format(R"({{"data":[{},true],"shape":[1,{}],"typestr":"<f4","version":3}})",
                                           reinterpret_cast<std::uintptr_t>(row.data()), row.size());
    constexpr const char* kMargins = R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,)"
                                     R"("strict_shape":false,"cache_id":0,"missing":NaN})";
    bst_ulong const* shape = nullptr;
    bst_ulong dimensions = 0;
    float const* result = nullptr;
    expect_ok(XGBoosterPredictFromDense(handle_, values.c_str(), kMargins, nullptr, &shape, &dimensions, &result));
    return static_cast<double>(result[0]);
  }

  [[nodiscard]] std::string saved() const override {
    bst_ulong size = 0;
    char const* text = nullptr;
    expect_ok(XGBoosterSaveModelToBuffer(handle_, R"({"format":"json"})", &size, &text));
    return {text, size};
  }

  [[nodiscard]] std::size_t width() const override {
    bst_ulong features = 0;
    expect_ok(XGBoosterGetNumFeature(handle_, &features));
    return features;
  }

private:
  /// A booster without trees learns from `matrix` how many features there are.
  void create(DMatrixHandle matrix) {
    expect_ok(XGBoosterCreate(&matrix, matrix == nullptr ? 0 : 1, &handle_));
    // Trees for some 20 to 200 examples: shallow, and leaves may hold single pairs, whose weight is at most a quarter.
    for (const auto& [name, value] : {std::pair{"verbosity", "0"},
                                      {"nthread", "1"},
                                      {"seed", "1"},
                                      {"tree_method", "exact"},
                                      {"objective", "rank:pairwise"},
                                      {"num_pairsample", "8"},
                                      {"eta", "0.1"},
                                      {"max_depth", "3"},
                                      {"min_child_weight", "0.5"},
                                      {"lambda", "1"}})
      expect_ok(XGBoosterSetParam(handle_, name, value));
  }

  BoosterHandle handle_ = nullptr;
  int trees_ = 0;
};

}  // namespace

std::unique_ptr<BoostedTrees> boosted_trees(const std::string& saved) {
  return std::make_unique<XgBoost>(saved);
}

void simsync_boosted_trees(const std::string& saved, std::unique_ptr<BoostedTrees>& out) {
  out = boosted_trees(saved);
}

}  // namespace simsync::detail
