#include "hw/run/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace simsync {
namespace {

[[noreturn]] void wrong(const Plan& plan, OpId op, int rank, std::size_t at, float is, float should) {
  throw WrongResult(fmt::format("{}: rank {} holds {} at position {} and should hold {}",
                                title_of(plan, plan.ops[static_cast<std::size_t>(op)]), rank, is, at, should));
}

}  // namespace

Buffers::Buffers(const Roles& roles, AgentId self, Optimizer optimizer)
    : roles_(roles), rank_(self), optimizer_(optimizer) {
  const Plan& plan = roles.plan();
  applied_.assign(static_cast<std::size_t>(plan.tensors), 0);
  pushed_ = applied_;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::Transfer && op.reason.phase == Phase::Push && op.tensor >= 0)
      pushed_[static_cast<std::size_t>(op.tensor)] = 1;
    if (op.kind == OpKind::HostWork && op.reason.phase == Phase::Update && op.tensor >= 0 && op.bytes > 0.0)
      applied_[static_cast<std::size_t>(op.tensor)] = 1;
  }
  for (std::size_t id = 0; id < plan.ops.size(); ++id) add_op(static_cast<OpId>(id), self);
}

void Buffers::add_op(OpId id, AgentId self) {
  const Plan& plan = roles_.plan();
  const Op& op = plan.ops[static_cast<std::size_t>(id)];
  const std::size_t floats = floats_of(op.bytes);
  const std::vector<std::size_t> samples = sample_positions(floats);
  if (op.kind == OpKind::Collective && !roles_.is_server(self)) {
    const auto parts = static_cast<std::size_t>(op.primitive == CollectivePrimitive::AllGather ? plan.rank_count() : 1);
    collectives_[id] = {std::make_unique<Gradient>(self, floats), std::vector<float>(floats * parts)};
    return;
  }
  if (op.kind != OpKind::Transfer || op.tensor < 0) return;
  for (int cell = 0; cell < plan.cell_count(op.scope); ++cell) {
    const Instance i{id, cell};
    const bool push = op.reason.phase == Phase::Push;
    if (push && roles_.source(i) == self) pushes_[id] = std::make_unique<Gradient>(self, floats);
    if (!push && roles_.sink(i) == self) {
      Pulled& pulled = pulls_[id];
      pulled.values.resize(floats);
      if (applied_by_server(op.tensor)) pulled.expected = std::make_unique<Parameters>(optimizer_, samples.size());
    }
    if (!push && roles_.source(i) == self && !pushed_[static_cast<std::size_t>(op.tensor)] &&
        tensors_[op.tensor].result.empty())
      for (std::size_t at = 0; at < floats; ++at) tensors_[op.tensor].result.push_back(kept_at(at));
    if (!push || roles_.sink(i) != self) continue;
    Tensor& tensor = tensors_[op.tensor];
    tensor.arrived[cell].resize(floats);
    tensor.sum.resize(floats);
    if (applied_by_server(op.tensor)) {
      if (tensor.parameters == nullptr) tensor.parameters = std::make_unique<Parameters>(optimizer_, floats);
    } else {
      tensor.result.resize(floats);
    }
  }
}

std::span<const std::byte> Buffers::outgoing(const Instance& i, int iteration) {
  const Op& op = roles_.op(i);
  if (op.reason.phase == Phase::Push) {
    Gradient& gradient = *pushes_.at(i.op);
    gradient.set(iteration);
    return std::as_bytes(gradient.values());
  }
  const Tensor& tensor = tensors_.at(op.tensor);
  return std::as_bytes(tensor.parameters ? tensor.parameters->values() : std::span<const float>(tensor.result));
}

std::span<float> Buffers::destination(const Instance& i) {
  const Op& op = roles_.op(i);
  if (op.reason.phase == Phase::Push) return tensors_.at(op.tensor).arrived.at(i.cell);
  return pulls_.at(i.op).values;
}

bool Buffers::take(const FrameHeader& header, Pieces pieces) {
  auto bytes = std::as_writable_bytes(destination({header.op, header.cell}));
  std::size_t at = header.offset;
  for (const auto& piece : pieces) {
    if (at + piece.size() > bytes.size()) throw WrongResult("a transfer is longer than its tensor");
    std::memcpy(bytes.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
  return at == header.total;
}

CollectiveBuffers Buffers::collective(OpId op, int iteration) {
  Collective& buffers = collectives_.at(op);
  buffers.in->set(iteration);
  const auto in = buffers.in->values();
  CollectiveBuffers out{in, buffers.out, buffers.in->samples(), {}};
  for (std::size_t part = 0; part < buffers.out.size(); part += in.size())
    for (const std::size_t at : out.changing) out.looked_at.push_back(part + at);
  return out;
}

void Buffers::add(const Instance& i) {
  Tensor& tensor = tensors_.at(roles_.op(i).tensor);
  const std::lock_guard lock(tensor.mutex);
  const auto& arrived = tensor.arrived.at(i.cell);
  if (tensor.added++ == 0) {
    std::copy(arrived.begin(), arrived.end(), tensor.sum.begin());
  } else {
    for (std::size_t k = 0; k < arrived.size(); ++k) tensor.sum[k] += arrived[k];
  }
}

void Buffers::update(OpId op) {
  Tensor& tensor = tensors_.at(roles_.plan().ops[static_cast<std::size_t>(op)].tensor);
  const std::lock_guard lock(tensor.mutex);
  tensor.added = 0;
  if (tensor.parameters != nullptr) {
    tensor.parameters->apply(tensor.sum);
  } else {
    // The next sum starts in other memory: slow readers may still be reading this one.
    std::swap(tensor.sum, tensor.result);
  }
}

void Buffers::check_collective(OpId op, int iteration, bool all) const {
  const Collective& buffers = collectives_.at(op);
  const Plan& plan = roles_.plan();
  const int ranks = plan.rank_count();
  const auto& samples = buffers.in->samples();
  const std::size_t floats = buffers.in->values().size();
  if (plan.ops[static_cast<std::size_t>(op)].primitive == CollectivePrimitive::AllGather) {
    for (int rank = 0; rank < ranks; ++rank)
      for (const std::size_t at : samples) {
        const float is = buffers.out[static_cast<std::size_t>(rank) * floats + at];
        if (is != gradient_at(rank, at, iteration)) wrong(plan, op, rank_, at, is, gradient_at(rank, at, iteration));
      }
    return;
  }
  for (const std::size_t at : samples)
    if (buffers.out[at] != gradient_sum_at(ranks, at, iteration))
      wrong(plan, op, rank_, at, buffers.out[at], gradient_sum_at(ranks, at, iteration));
  if (!all) return;
  const auto plain = static_cast<float>(ranks * (ranks + 1) / 2);
  for (std::size_t at = 0; at < floats; ++at)
    if (buffers.out[at] != plain && !std::binary_search(samples.begin(), samples.end(), at))
      wrong(plan, op, rank_, at, buffers.out[at], plain);
}

void Buffers::check_pull(const Instance& i, int iteration) {
  Pulled& pulled = pulls_.at(i.op);
  const auto samples = sample_positions(pulled.values.size());
  std::vector<float> sums;
  for (const std::size_t at : samples) sums.push_back(gradient_sum_at(roles_.plan().rank_count(), at, iteration));
  if (pushed_[static_cast<std::size_t>(roles_.op(i).tensor)] == 0)
    std::transform(samples.begin(), samples.end(), sums.begin(), kept_at);
  std::span<const float> should = sums;
  if (pulled.expected != nullptr) {
    pulled.expected->apply(sums);
    should = pulled.expected->values();
  }
  for (std::size_t k = 0; k < samples.size(); ++k)
    if (pulled.values[samples[k]] != should[k])
      wrong(roles_.plan(), i.op, rank_, samples[k], pulled.values[samples[k]], should[k]);
}

}  // namespace simsync
