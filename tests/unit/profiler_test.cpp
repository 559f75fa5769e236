// The layer profiler on a device that only counts.
#include <algorithm>

#include "base/error.hpp"
#include "hw/profile/buffer_pool.hpp"
#include "hw/profile/stages.hpp"
#include "hw/profile/time_layers.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Work that was started so far.
struct Counts {
  double flops = 0.0;
  double bytes = 0.0;
};

class CountingKernel final : public Kernel {
public:
  CountingKernel(Counts& counts, double flops, double bytes) : counts_(counts), flops_(flops), bytes_(bytes) {}
  void launch() override {
    counts_.flops += flops_;
    counts_.bytes += bytes_;
  }

private:
  Counts& counts_;
  double flops_;
  double bytes_;
};

/// Every operation takes a second.
class CountingBackend final : public Backend {
public:
  [[nodiscard]] DeviceDescription device() const override { return {"counter", "none"}; }
  [[nodiscard]] std::int64_t element_bytes() const override { return 4; }
  std::unique_ptr<Kernel> convolution(const Convolution& c, std::int64_t batch, ConvolutionPass) override {
    return std::make_unique<CountingKernel>(counts_, c.flops() * static_cast<double>(batch), 0.0);
  }
  std::unique_ptr<Kernel> gemm(const Gemm& g) override {
    return std::make_unique<CountingKernel>(counts_, 2.0 * static_cast<double>(g.count * g.m * g.n * g.k), 0.0);
  }
  std::unique_ptr<Kernel> stream(Bytes size) override {
    return std::make_unique<CountingKernel>(counts_, 0.0, static_cast<double>(size.count));
  }
  std::vector<Seconds> run(const std::vector<const Stage*>& stages) override {
    std::vector<Seconds> times;
    for (const Stage* stage : stages) times.push_back(Seconds{work(*stage).flops});
    return times;
  }
  Seconds run_whole(const std::vector<const Stage*>& stages) override {
    Seconds sum;
    for (const Seconds time : run(stages)) sum += time;
    return sum;
  }

  Counts work(const Stage& stage) {
    counts_ = {};
    for (const auto& [kernel, times] : stage.kernels) {
      for (std::int64_t i = 0; i < times; ++i) kernel->launch();
    }
    return counts_;
  }

private:
  Counts counts_;
};

}  // namespace

TEST_CASE("the kernels of a layer do the layer's work", "[profile]") {
  constexpr std::int64_t kBatch = 3;
  const auto name = GENERATE(as<std::string>{}, "alexnet", "googlenet", "bert-base", "gnmt", "lm1b", "dlrm");
  const Model model = find_model(name);
  CountingBackend backend;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    if (!layer.operation.has_products()) continue;
    INFO(name << " " << layer.name);
    const LayerStages stages = make_stages(model, id, kBatch, backend);
    // What a layer computes between its products is a stream.
    const double forward = layer.forward_flops.value() - layer.operation.pointwise_flops;
    const double passes = layer.operation.data_gradient ? 2.0 : 1.0;
    CHECK_THAT(backend.work(stages.forward).flops, WithinRel(kBatch * forward, 1e-12));
    CHECK_THAT(backend.work(stages.backward).flops, WithinRel(kBatch * passes * forward, 1e-12));
  }
}

TEST_CASE("other layers are streams of the bytes they move", "[profile]") {
  const Model model = parse_model(
      "schema: simsync/model/v1\nname: s\nbatch: 1\nsample: x\ninput: [100]\nlayers:\n  - {relu: r}\n  - {loss: l}\n",
      "s.yaml");
  CountingBackend backend;
  const LayerStages relu = make_stages(model, 0, 2, backend);
  // Two samples of 400 bytes are read and written; backward reads dy and y and writes dx.
  CHECK(backend.work(relu.forward).bytes == 2 * 800.0);
  CHECK(backend.work(relu.backward).bytes == 2 * 1200.0);
  // Two kernels: logits of 400 bytes three times, one number of 4 bytes.
  const LayerStages loss = make_stages(model, 1, 2, backend);
  CHECK(loss.forward.kernels.at(0).second == 2);
  CHECK(backend.work(loss.forward).bytes == 2 * 1204.0);
}

TEST_CASE("times find their layers, forward and backward", "[profile]") {
  const Model model = parse_model(
      "schema: simsync/model/v1\nname: s\nbatch: 1\nsample: x\ninput: [10]\nlayers:\n  - {dense: a, out: 20}\n"
      "  - {layer: b, kind: dense, forward_flops: 8FLOP, output_bytes: 80B}\n  - {dense: c, out: 30}\n",
      "s.yaml");
  CountingBackend backend;
  const LayerTimings timings = time_layers(model, {.batch = 2, .repeats = 3}, backend);
  REQUIRE(timings.steps.size() == 3);
  REQUIRE(timings.whole.size() == 3);
  const auto& step = timings.steps.back();
  // a: 2 x 2 x 10 x 20, backward the weight gradient only. c: 2 x 2 x 20 x 30, backward both.
  CHECK(step.at(0).forward.value() == 800.0);
  CHECK(step.at(0).backward.value() == 800.0);
  CHECK(step.at(2).forward.value() == 2400.0);
  CHECK(step.at(2).backward.value() == 4800.0);
  // b is given in numbers.
  CHECK(timings.untimed == std::vector<std::string>{"b"});
  CHECK(step.at(1).forward.value() < 0.0);
  CHECK(timings.sum_of_layers().value() == 8800.0);
  CHECK(timings.whole_step().value() == 8800.0);
}

TEST_CASE("buffers are shared in turns once the pool is full", "[profile]") {
  BufferPool pool(250, [](std::size_t size) { return std::make_shared<std::vector<char>>(size); });
  const auto first = pool.take({100, 100});
  REQUIRE(first.size() == 2);
  CHECK(first[0] != first[1]);
  // 50 bytes are left: the two buffers come back, the oldest first, and never the same one twice in a call.
  const auto second = pool.take({100});
  CHECK(second[0] == first[0]);
  CHECK(pool.take({100})[0] == first[1]);
  CHECK(pool.allocated() == 200);
  const auto third = pool.take({100, 100, 100});
  CHECK(third[2] != first[0]);
  CHECK(third[2] != first[1]);
  CHECK(pool.allocated() == 300);
}

TEST_CASE("an unknown device is refused", "[profile]") {
  CHECK_THROWS_AS(make_backend("tpu", "fp32"), InputError);
}

// The exception comes out of a module that was loaded at run time, where the build has one.
TEST_CASE("a GPU that is not there is a missing capability", "[profile]") {
  CHECK_THROWS_AS(make_backend("cuda:99", "fp32"), CapabilityError);
}
