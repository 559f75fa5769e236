#include "strategies/layouts/layout_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/random.hpp"

namespace simsync {
namespace {

struct Mesh {
  int tensor = 1;
  int pipeline = 1;
};

/// The fewest ranks that share out tokens so that the samples divide among the rest. None: they never do.
std::optional<int> least_context(const LayoutSpace& space, const LayoutTask& task, std::int64_t replicas) {
  for (const int context : space.context)
    if (replicas % context == 0 && task.samples % (replicas / context) == 0) return context;
  return std::nullopt;
}

std::vector<Mesh> meshes_of(const LayoutSpace& space, const LayoutTask& task) {
  std::vector<Mesh> out;
  for (const int tensor : space.tensor)
    for (const int pipeline : space.pipeline) {
      const std::int64_t ranks = static_cast<std::int64_t>(tensor) * pipeline;
      if (ranks <= task.workers && task.workers % ranks == 0 && least_context(space, task, task.workers / ranks))
        out.push_back({tensor, pipeline});
    }
  if (out.empty())
    throw InputError(
        fmt::format("{} tensor-parallel ranks times {} stages: no product divides {} workers into "
                    "replicas among which {} samples of a step divide",
                    fmt::join(space.tensor, ", "), fmt::join(space.pipeline, ", "), task.workers, task.samples),
        "choose others with --set space.tensor, --set space.pipeline or --global-batch");
  return out;
}

class LayoutSearch {
public:
  LayoutSearch(const LayoutSpace& space, const LayoutTask& task, const EvaluateLayout& evaluate,
               const LayoutSearchOptions& options, const std::function<bool()>& stop)
      : space_(space),
        task_(task),
        evaluate_(evaluate),
        options_(options),
        stop_(stop),
        meshes_(meshes_of(space, task)),
        random_(options.seed) {
    for (const PipelineSchedule schedule : space.schedules)
      for (const int chunks : chunks_of(space, schedule))
        for (const StageBlocks blocks : space.stage_blocks) orders_.push_back({schedule, chunks, blocks});
  }

  LayoutSearchResult run() {
    switch (options_.method) {
      case LayoutMethod::Coordinate:
        for (const Mesh& mesh : meshes_) descend_on(mesh);
        break;
      case LayoutMethod::Exhaustive:
        go_through_all();
        break;
      case LayoutMethod::Anneal:
        anneal();
        break;
      case LayoutMethod::Random:
        for (std::int64_t i = 0; i < options_.draws && !stopped(); ++i)
          (void)cost_of(with_drawn_splits(draw(any(meshes_))));
        break;
    }
    LayoutSearchResult out{.evaluated = {}, .impossible = impossible_};
    for (const auto& [layout, cost] : known_)
      if (cost) out.evaluated.push_back({layout, *cost});
    // Of those that cost the same, the one that says less.
    const auto says = [](const Layout& layout) { return layout.splits.size() + (layout.sequence ? 1 : 0); };
    std::stable_sort(out.evaluated.begin(), out.evaluated.end(),
                     [&](const EvaluatedLayout& a, const EvaluatedLayout& b) {
                       if (is_better(a.cost, b.cost)) return true;
                       return !is_better(b.cost, a.cost) && says(a.layout) < says(b.layout);
                     });
    return out;
  }

private:
  struct Order {
    PipelineSchedule schedule;
    int chunks;
    StageBlocks blocks;
    void set(Layout& layout) const {
      layout.schedule = schedule;
      layout.chunks = chunks;
      layout.blocks = blocks;
    }
  };
  enum class Coordinate { Order, MicroBatch, Recompute, Zero, Sequence, Experts, Context };
  static constexpr Coordinate kCoordinates[] = {Coordinate::Order,  Coordinate::MicroBatch, Coordinate::Recompute,
                                                Coordinate::Zero,   Coordinate::Sequence,   Coordinate::Experts,
                                                Coordinate::Context};

  [[nodiscard]] bool stopped() const { return stop_ && stop_(); }
  template <typename Value>
  Value any(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(random_.below(values.size()))];
  }

  /// Nothing for what does not divide or cannot be.
  std::optional<LayoutCost> cost_of(const Layout& layout) {
    if (!task_.divides(layout)) return std::nullopt;
    const auto [found, fresh] = known_.try_emplace(layout);
    if (fresh) {
      found->second = evaluate_(layout);
      if (!found->second) ++impossible_;
    }
    return found->second;
  }

  /// The layout with every value of one coordinate, and one stage or one tensor-parallel rank without what needs more.
  [[nodiscard]] std::vector<Layout> variants(const Layout& layout, Coordinate coordinate) const {
    std::vector<Layout> out;
    const auto with = [&](const auto& values, const auto& set) {
      for (const auto& value : values) {
        out.push_back(layout);
        set(out.back(), value);
      }
    };
    switch (coordinate) {
      case Coordinate::Order:
        if (layout.pipeline == 1) return {layout};
        with(orders_, [](Layout& one, const Order& order) { order.set(one); });
        break;
      case Coordinate::MicroBatch:
        with(space_.micro_batch, [](Layout& one, std::int64_t samples) { one.micro_batch = samples; });
        break;
      case Coordinate::Recompute:
        with(space_.recompute, [](Layout& one, Recompute recompute) { one.recompute = recompute; });
        break;
      case Coordinate::Zero:
        with(space_.zero, [&](Layout& one, int zero) { one.zero = task_.replicas(layout) == 1 ? 0 : zero; });
        break;
      case Coordinate::Sequence:
        with(space_.sequence, [&](Layout& one, bool sequence) { one.sequence = sequence && layout.tensor > 1; });
        break;
      case Coordinate::Experts:
        with(space_.experts, [](Layout& one, int experts) { one.experts = experts; });
        break;
      case Coordinate::Context:
        with(space_.context, [](Layout& one, int context) { one.context = context; });
        break;
    }
    return out;
  }

  /// With little memory: small micro-batches, all shared out.
  [[nodiscard]] Layout smallest(const Mesh& mesh) const {
    Layout out{.tensor = mesh.tensor, .pipeline = mesh.pipeline};
    out.micro_batch = space_.micro_batch.front();
    out.zero = task_.replicas(out) == 1 ? 0 : space_.zero.back();
    out.context = *least_context(space_, task_, task_.replicas(out));
    out.experts = space_.experts.front();
    for (const int experts : space_.experts)
      if (task_.replicas(out) % experts == 0) out.experts = experts;
    out.sequence =
        mesh.tensor > 1 && std::find(space_.sequence.begin(), space_.sequence.end(), true) != space_.sequence.end();
    set_first_order(out);
    return out;
  }
  void set_first_order(Layout& layout) const {
    if (layout.pipeline > 1) orders_.front().set(layout);
  }

  Layout draw(const Mesh& mesh) {
    Layout out{.tensor = mesh.tensor, .pipeline = mesh.pipeline};
    for (const Coordinate coordinate : kCoordinates) out = any(variants(out, coordinate));
    return out;
  }

  void descend_on(const Mesh& mesh) {
    mesh_best_.reset();
    // Where much is computed again large micro-batches fit, with which less cannot be: one coordinate at a time does
    // not come back from there.
    for (const Recompute recompute : space_.recompute) {
      if (stopped()) return;
      Layout start = smallest(mesh);
      start.recompute = recompute;
      descend(start);
    }
    for (int start = 0; start < options_.restarts && !stopped(); ++start) descend(draw(mesh));
    if (!mesh_best_) return;
    if (!best_ || is_better(mesh_best_->cost, best_->cost)) best_ = mesh_best_;
    // Splits do not make up for a mesh that is slow by much.
    constexpr double kNear = 1.5;
    const LayoutCost& cost = mesh_best_->cost;
    if (mesh.tensor == 1 || space_.tied_layers.empty() || !cost.fits() || cost.step > kNear * best_->cost.step) return;
    const Layout split = descend_splits(mesh_best_->layout);
    if (split != mesh_best_->layout) descend(split);
    if (is_better(mesh_best_->cost, best_->cost)) best_ = mesh_best_;
  }

  void keep(const Layout& layout, const LayoutCost& cost) {
    if (!mesh_best_ || is_better(cost, mesh_best_->cost)) mesh_best_ = EvaluatedLayout{layout, cost};
  }

  /// With another split of these layers; none: the rule's.
  static Layout with_split(Layout layout, const std::string& layers, std::optional<LayerSplit> split) {
    std::erase_if(layout.splits, [&](const SplitChoice& choice) { return choice.layers == layers; });
    if (split) layout.splits.push_back({layers, *split});
    std::sort(layout.splits.begin(), layout.splits.end());
    return layout;
  }

  /// The layout with every split of these layers.
  static std::vector<Layout> split_variants(const Layout& layout, const std::string& layers) {
    static constexpr std::optional<LayerSplit> kSplits[] = {std::nullopt, LayerSplit::Columns, LayerSplit::Rows,
                                                            LayerSplit::Tokens, LayerSplit::Whole};
    if (layout.tensor == 1) return {layout};
    std::vector<Layout> out;
    for (const std::optional<LayerSplit>& split : kSplits) out.push_back(with_split(layout, layers, split));
    return out;
  }

  /// Half of them keep to the rule: most others are slow.
  Layout with_drawn_splits(Layout layout) {
    if (random_.below(2) == 0) return layout;
    for (const std::string& layers : space_.tied_layers) layout = any(split_variants(layout, layers));
    return layout;
  }

  Layout descend_splits(Layout at) {
    LayoutCost best = *cost_of(at);
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::string& layers : space_.tied_layers)
        for (const Layout& variant : split_variants(at, layers)) {
          if (stopped()) return at;
          const auto cost = cost_of(variant);
          if (!cost || !is_better(*cost, best)) continue;
          best = *cost;
          at = variant;
          changed = true;
        }
    }
    return at;
  }

  void descend(Layout at) {
    std::optional<LayoutCost> best = cost_of(at);
    if (best) keep(at, *best);
    for (bool changed = true; changed && !stopped();) {
      changed = false;
      for (const Coordinate coordinate : kCoordinates) {
        for (const Layout& variant : variants(at, coordinate)) {
          if (stopped()) return;
          const auto cost = cost_of(variant);
          if (!cost || (best && !is_better(*cost, *best))) continue;
          best = cost;
          at = variant;
          keep(at, *cost);
          changed = true;
        }
      }
    }
  }

  /// Each of them with all of its variants. @throws InputError when there are too many
  template <typename Variants>
  std::vector<Layout> all_variants(const std::vector<Layout>& layouts, const Variants& variants) const {
    std::vector<Layout> out;
    for (const Layout& layout : layouts) {
      for (const Layout& variant : variants(layout)) out.push_back(variant);
      if (static_cast<std::int64_t>(out.size()) > kMostLayouts)
        throw InputError(
            fmt::format("an exhaustive search goes through at most {} layouts", kMostLayouts),
            "restrict the space, such as with --set space.splits=rule, or search with --method coordinate");
    }
    return out;
  }

  void go_through_all() {
    std::vector<Layout> all;
    for (const Mesh& mesh : meshes_) all.push_back({.tensor = mesh.tensor, .pipeline = mesh.pipeline});
    for (const Coordinate coordinate : kCoordinates)
      all = all_variants(all, [&](const Layout& layout) { return variants(layout, coordinate); });
    for (const std::string& layers : space_.tied_layers)
      all = all_variants(all, [&](const Layout& layout) { return split_variants(layout, layers); });
    for (const Layout& layout : all) {
      if (stopped()) return;
      (void)cost_of(layout);
    }
  }

  /// One coordinate, the split of some layers or the mesh at random. Steps are compared by their logarithms; a layout
  /// that does not fit counts as slower by how much it lacks.
  void anneal() {
    const auto energy = [](const LayoutCost& cost) {
      constexpr double kGiB = 1 << 30;
      return std::log(cost.step.value()) + (cost.fits() ? 0.0 : 1.0 + static_cast<double>(cost.over.count) / kGiB);
    };
    std::optional<LayoutCost> now;
    Layout at = draw(any(meshes_));
    constexpr double kHot = 0.5;
    constexpr double kCold = 0.005;
    for (std::int64_t i = 0; i < options_.draws && !stopped(); ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(options_.draws);
      const double temperature = kHot * std::pow(kCold / kHot, share);
      const Layout next = now ? neighbor(at) : draw(any(meshes_));
      const auto cost = cost_of(next);
      if (!cost) continue;
      if (now && random_.unit() >= std::exp((energy(*now) - energy(*cost)) / temperature)) continue;
      now = cost;
      at = next;
    }
  }

  Layout neighbor(const Layout& layout) {
    const std::size_t splits = space_.tied_layers.empty() ? 0 : 1;
    const std::size_t choice = random_.below(std::size(kCoordinates) + 1 + splits);
    if (choice < std::size(kCoordinates)) return any(variants(layout, kCoordinates[choice]));
    return choice == std::size(kCoordinates) ? moved(layout) : any(split_variants(layout, any(space_.tied_layers)));
  }

  /// To another mesh, with the other coordinates as they are where they can be.
  Layout moved(Layout layout) {
    const Mesh mesh = any(meshes_);
    const bool had_stages = layout.pipeline > 1;
    layout.tensor = mesh.tensor;
    layout.pipeline = mesh.pipeline;
    if (mesh.tensor == 1) {
      layout.sequence = false;
      layout.splits.clear();
    }
    if (mesh.pipeline == 1) {
      Order{PipelineSchedule::OneForwardOneBackward, 1, StageBlocks::Even}.set(layout);
    } else if (!had_stages) {
      set_first_order(layout);
    }
    if (task_.replicas(layout) == 1) layout.zero = 0;
    // What the mesh before did not have: it may be outside of the space.
    const auto has = [](const auto& values, auto value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    if (!has(space_.zero, layout.zero)) layout = any(variants(layout, Coordinate::Zero));
    if (!has(space_.sequence, layout.sequence)) layout = any(variants(layout, Coordinate::Sequence));
    return layout;
  }

  const LayoutSpace& space_;
  const LayoutTask& task_;
  const EvaluateLayout& evaluate_;
  const LayoutSearchOptions& options_;
  const std::function<bool()>& stop_;
  std::vector<Mesh> meshes_;
  std::vector<Order> orders_;
  Random random_;
  std::map<Layout, std::optional<LayoutCost>> known_;
  std::int64_t impossible_ = 0;
  std::optional<EvaluatedLayout> mesh_best_;  ///< of a descent, on the mesh that it is on
  std::optional<EvaluatedLayout> best_;       ///< on all meshes so far
};

}  // namespace

const Words<LayoutMethod>& layout_method_words() {
  static const Words<LayoutMethod> kWords{{"coordinate", LayoutMethod::Coordinate},
                                          {"exhaustive", LayoutMethod::Exhaustive},
                                          {"anneal", LayoutMethod::Anneal},
                                          {"random", LayoutMethod::Random}};
  return kWords;
}

bool is_better(const LayoutCost& a, const LayoutCost& b) {
  if (a.fits() != b.fits()) return a.fits();
  return a.fits() || a.over == b.over ? a.step < b.step : a.over < b.over;
}

std::int64_t LayoutSearchResult::misfits() const {
  return std::count_if(evaluated.begin(), evaluated.end(), [](const EvaluatedLayout& one) { return !one.cost.fits(); });
}

LayoutSearchResult search_layouts(const LayoutSpace& space, const LayoutTask& task, const EvaluateLayout& evaluate,
                                  const LayoutSearchOptions& options, const std::function<bool()>& stop) {
  return LayoutSearch(space, task, evaluate, options, stop).run();
}

}  // namespace simsync
