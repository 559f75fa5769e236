#include "hw/run/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace simsync {
namespace {

[[noreturn]] void wrong(const Plan& plan, OpId op, int rank, std::size_t at, float is, float should) {
  throw WrongResult(fmt::format("{}: rank {} holds {} at position {} and should hold {}",
                                title_of(plan, plan.ops[static_cast<std::size_t>(op)]), rank, is, at, should));
}

/// All that are no samples hold the same. @throws WrongResult
void expect_plain(const Plan& plan, OpId op, int rank, std::span<const float> values,
                  const std::vector<std::size_t>& samples, float plain) {
  for (std::size_t at = 0; at < values.size(); ++at)
    if (values[at] != plain && !std::binary_search(samples.begin(), samples.end(), at))
      wrong(plan, op, rank, at, values[at], plain);
}

}  // namespace

Buffers::Buffers(const Roles& roles, AgentId self, Optimizer optimizer, int iterations)
    : roles_(roles), rank_(self), optimizer_(optimizer) {
  find_lives(iterations);
  for (std::size_t id = 0; id < roles.plan().ops.size(); ++id) add_op(static_cast<OpId>(id), self);
}

void Buffers::find_lives(int iterations) {
  const Plan& plan = roles_.plan();
  lives_.resize(static_cast<std::size_t>(plan.tensors));
  const auto is_update = [](const Op& op) {
    const auto* work = std::get_if<HostWork>(&op.body);
    return work != nullptr && work->action == HostAction::Apply && work->at.is_server();
  };
  for (const Op& op : plan.ops) {
    if (op.concerns_server()) {
      Life& own = lives_[static_cast<std::size_t>(op.tensor())];
      own.pushed = own.pushed || (op.kind() == OpKind::Transfer && op.transfer().pushes());
      own.applied = own.applied || (is_update(op) && op.bytes() > 0.0);
      own.each = own.each || (is_update(op) && op.grouping != kWholeJob);
      for (const After& after : op.after) own.may_miss = std::max(own.may_miss, after.may_miss);
    }
    for (const After& after : op.after) {
      const Op& before = plan.ops[static_cast<std::size_t>(after.op)];
      if (plan.in_lock_step() || !is_update(before)) continue;
      int& behind = lives_[static_cast<std::size_t>(before.tensor())].behind;
      behind = std::max(behind, std::min(after.lag, iterations));
    }
  }
}

void Buffers::add_op(OpId id, AgentId self) {
  const Plan& plan = roles_.plan();
  const Op& op = plan.ops[static_cast<std::size_t>(id)];
  if (op.kind() == OpKind::Collective && !roles_.is_server(self)) return add_collective(id, self);
  if (op.kind() != OpKind::Transfer || !op.concerns_server()) return;
  if (op.transfer().pushes()) {
    add_push(id, self);
  } else {
    add_pull(id, self);
  }
}

void Buffers::add_collective(OpId id, AgentId self) {
  const Op& op = roles_.plan().ops[static_cast<std::size_t>(id)];
  const Grouping& grouping = roles_.plan().grouping(op.grouping);
  if (grouping.group_of(self) < 0) return;
  const auto ranks = grouping.ranks(grouping.group_of(self));
  const auto own = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), self) - ranks.begin());
  const CollectiveSizes sizes = sizes_of(op.collective(), ranks.size());
  collectives_[id] = {std::make_unique<GradientValues>(self, sizes.in), std::vector<float>(sizes.out),
                      results_of(op.collective(), ranks, own)};
}

void Buffers::add_push(OpId id, AgentId self) {
  const Op& op = roles_.plan().ops[static_cast<std::size_t>(id)];
  const std::size_t floats = floats_of(op.bytes());
  const auto slots = static_cast<std::size_t>(life(op).behind) + 1;
  for (int group = 0; group < roles_.plan().grouping(op.grouping).count(); ++group) {
    const Instance i{id, group};
    if (roles_.source(i) == self) pushes_[id].assign(slots, GradientValues(self, floats));
    if (roles_.sink(i) != self) continue;
    Tensor& tensor = tensors_[op.tensor()];
    tensor.arrived[group].assign(slots, std::vector<float>(floats));
    if (!life(op).each) tensor.sums.assign(slots, Sum{.values = std::vector<float>(floats), .added = {}});
    if (!life(op).applied) {
      tensor.result.resize(floats);
    } else if (tensor.parameters == nullptr) {
      tensor.parameters = std::make_unique<Parameters>(optimizer_, floats);
      if (by_arrival(life(op)))
        tensor.expected = std::make_unique<Parameters>(optimizer_, sample_positions(floats).size());
    }
  }
}

void Buffers::add_pull(OpId id, AgentId self) {
  const Plan& plan = roles_.plan();
  const Op& op = plan.ops[static_cast<std::size_t>(id)];
  const std::size_t floats = floats_of(op.bytes());
  for (int group = 0; group < plan.grouping(op.grouping).count(); ++group) {
    const Instance i{id, group};
    if (roles_.sink(i) == self) {
      Pulled& pulled = pulls_[id];
      const std::size_t samples = sample_positions(floats).size();
      pulled.values.resize(floats);
      if (life(op).applied) pulled.expected = std::make_unique<Parameters>(optimizer_, samples + 1);
      pulled.versions = {std::vector<float>(samples + 1)};
    }
    if (roles_.source(i) != self) continue;
    if (!plan.in_lock_step()) snapshots_[i].resize(floats);
    if (life(op).pushed || !tensors_[op.tensor()].result.empty()) continue;
    for (std::size_t at = 0; at < floats; ++at) tensors_[op.tensor()].result.push_back(kept_at(at));
  }
}

std::span<const std::byte> Buffers::outgoing(const Instance& i, int iteration) {
  const Op& op = roles_.op(i);
  if (op.transfer().pushes()) {
    GradientValues& gradient = pushes_.at(i.op)[slot(op, iteration)];
    gradient.set(iteration);
    return std::as_bytes(gradient.values());
  }
  Tensor& tensor = tensors_.at(op.tensor());
  const auto values = tensor.parameters ? tensor.parameters->values() : std::span<const float>(tensor.result);
  if (roles_.plan().in_lock_step()) return std::as_bytes(values);
  const std::lock_guard lock(tensor.mutex);
  std::vector<float>& snapshot = snapshots_.at(i);
  std::copy(values.begin(), values.end(), snapshot.begin());
  return std::as_bytes(std::span<const float>(snapshot));
}

std::span<float> Buffers::destination(const Instance& i, int iteration) {
  const Op& op = roles_.op(i);
  if (op.transfer().pushes()) return tensors_.at(op.tensor()).arrived.at(i.group)[slot(op, iteration)];
  return pulls_.at(i.op).values;
}

bool Buffers::take(const FrameHeader& header, Pieces pieces) {
  auto bytes = std::as_writable_bytes(destination({header.op, header.group}, header.iteration));
  std::size_t at = header.offset;
  for (const auto& piece : pieces) {
    if (at + piece.size() > bytes.size()) throw WrongResult("a transfer is longer than its tensor");
    std::memcpy(bytes.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
  return at == header.total;
}

CollectiveBuffers Buffers::collective(OpId op, int iteration, bool clear) {
  Collective& buffers = collectives_.at(op);
  if (clear) std::fill(buffers.out.begin(), buffers.out.end(), 0.0F);
  buffers.in->set(iteration);
  return {buffers.in->values(), buffers.out, buffers.in->samples(), samples_of(buffers)};
}

std::vector<std::size_t> Buffers::samples_of(const Collective& buffers) {
  std::vector<std::size_t> out;
  for (const ResultPart& part : buffers.results)
    for (const std::size_t at : buffers.in->samples())
      if (at >= part.in_begin && at < part.in_begin + part.floats) out.push_back(at - part.in_begin + part.out_begin);
  return out;
}

void Buffers::add(const Instance& i, int iteration) {
  const Op& op = roles_.op(i);
  Tensor& tensor = tensors_.at(op.tensor());
  const std::lock_guard lock(tensor.mutex);
  const auto& arrived = tensor.arrived.at(i.group)[slot(op, iteration)];
  Sum& sum = tensor.sums[slot(op, iteration)];
  const int needed = roles_.plan().rank_count() - life(op).may_miss;
  const bool late = iteration < tensor.updates || static_cast<int>(sum.added.size()) == needed;
  if (life(op).may_miss > 0 && late) return;
  sum.added.push_back(roles_.ranks_of(i).front());
  if (sum.added.size() == 1) {
    std::copy(arrived.begin(), arrived.end(), sum.values.begin());
  } else {
    for (std::size_t k = 0; k < arrived.size(); ++k) sum.values[k] += arrived[k];
  }
}

void Buffers::update(const Instance& i, int iteration) {
  const Op& op = roles_.op(i);
  Tensor& tensor = tensors_.at(op.tensor());
  const std::lock_guard lock(tensor.mutex);
  if (life(op).each) {
    tensor.parameters->apply(tensor.arrived.at(i.group)[slot(op, iteration)]);
    return check_applied(i, iteration, tensor, {roles_.ranks_of(i).front()});
  }
  Sum& sum = tensor.sums[slot(op, iteration)];
  const std::vector<int> added = std::exchange(sum.added, {});
  ++tensor.updates;
  if (tensor.parameters != nullptr) {
    tensor.parameters->apply(sum.values);
    if (life(op).may_miss > 0) check_applied(i, iteration, tensor, added);
  } else {
    // The next sum starts in other memory: slow readers may still be reading this one.
    std::swap(sum.values, tensor.result);
  }
}

/// The same gradients in the same order give the same bits.
void Buffers::check_applied(const Instance& i, int iteration, Tensor& tensor, const std::vector<int>& ranks) {
  const auto values = tensor.parameters->values();
  const auto samples = sample_positions(values.size());
  std::vector<float> gradient(samples.size(), 0.0F);
  for (const int rank : ranks)
    for (std::size_t k = 0; k < samples.size(); ++k) gradient[k] += gradient_at(rank, samples[k], iteration);
  tensor.expected->apply(gradient);
  for (std::size_t k = 0; k < samples.size(); ++k)
    if (values[samples[k]] != tensor.expected->values()[k])
      wrong(roles_.plan(), i.op, rank_, samples[k], values[samples[k]], tensor.expected->values()[k]);
}

void Buffers::check_collective(OpId op, int iteration, bool all) const {
  const Plan& plan = roles_.plan();
  const Collective& buffers = collectives_.at(op);
  const std::vector<std::size_t> samples = samples_of(buffers);
  for (const ResultPart& part : buffers.results) {
    for (const std::size_t at : samples) {
      if (at < part.out_begin || at >= part.out_begin + part.floats) continue;
      float sum = 0.0F;
      for (const int rank : part.ranks) sum += gradient_at(rank, at - part.out_begin + part.in_begin, iteration);
      if (buffers.out[at] != sum) wrong(plan, op, rank_, at, buffers.out[at], sum);
    }
    if (!all) continue;
    float plain = 0.0F;
    for (const int rank : part.ranks) plain += static_cast<float>(rank + 1);
    for (std::size_t at = part.out_begin; at < part.out_begin + part.floats; ++at)
      if (buffers.out[at] != plain && !std::binary_search(samples.begin(), samples.end(), at))
        wrong(plan, op, rank_, at, buffers.out[at], plain);
  }
}

/// Samples after so many updates, and after those before it that may be all that a reader sees.
void Buffers::extend_versions(const Op& op, Pulled& pulled, int updates) {
  const auto samples = sample_positions(pulled.values.size());
  for (; pulled.updates < updates; ++pulled.updates) {
    std::vector<float> now;
    for (const std::size_t at : samples) now.push_back(gradient_sum_at(roles_.plan().rank_count(), at, pulled.updates));
    const int ranks = roles_.plan().rank_count();
    const int sum = ranks * (ranks + 1) / 2;
    now.push_back(static_cast<float>(sum));
    if (!life(op).pushed) std::transform(samples.begin(), samples.end(), now.begin(), kept_at);
    if (pulled.expected != nullptr) {
      pulled.expected->apply(now);
      now.assign(pulled.expected->values().begin(), pulled.expected->values().end());
    }
    pulled.versions.push_back(std::move(now));
    if (pulled.versions.size() > static_cast<std::size_t>(life(op).behind) + 1) pulled.versions.pop_front();
  }
}

void Buffers::check_pull(const Instance& i, int iteration, bool all) {
  if (by_arrival(life(roles_.op(i)))) {
    check_moved_on(i, all);
  } else {
    check_version(i, iteration, all);
  }
}

/// What is read is smaller than before at every sample; nobody knows which gradients it has seen, but all other values
/// have seen the same ones in the same order. A step that does without some gradients may be updated before all have
/// read what the one before left: they read the same twice.
void Buffers::check_moved_on(const Instance& i, bool all) {
  Pulled& pulled = pulls_.at(i.op);
  const auto samples = sample_positions(pulled.values.size());
  std::vector<float>& before = pulled.versions.back();
  const bool twice = life(roles_.op(i)).may_miss > 0;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const float now = pulled.values[samples[k]];
    // All values begin at 0.
    const bool again = twice && now == before[k] && now < 0.0F;
    if (!(now < before[k]) && !again) wrong(roles_.plan(), i.op, rank_, samples[k], now, before[k]);
    before[k] = now;
  }
  std::size_t other = 0;
  while (other < pulled.values.size() && std::binary_search(samples.begin(), samples.end(), other)) ++other;
  if (all && other < pulled.values.size())
    expect_plain(roles_.plan(), i.op, rank_, pulled.values, samples, pulled.values[other]);
}

/// What is read is one of the versions that the staleness allows.
void Buffers::check_version(const Instance& i, int iteration, bool all) {
  const Op& op = roles_.op(i);
  Pulled& pulled = pulls_.at(i.op);
  extend_versions(op, pulled, iteration + 1);
  const auto samples = sample_positions(pulled.values.size());
  const auto first_wrong = [&](const std::vector<float>& version) {
    std::size_t k = 0;
    while (k < samples.size() && pulled.values[samples[k]] == version[k]) ++k;
    return k;
  };
  const auto version = std::find_if(pulled.versions.begin(), pulled.versions.end(),
                                    [&](const auto& known) { return first_wrong(known) == samples.size(); });
  if (version == pulled.versions.end()) {
    const auto& newest = pulled.versions.back();
    const std::size_t k = first_wrong(newest);
    wrong(roles_.plan(), i.op, rank_, samples[k], pulled.values[samples[k]], newest[k]);
  }
  if (all && life(op).pushed) expect_plain(roles_.plan(), i.op, rank_, pulled.values, samples, version->back());
}

}  // namespace simsync
