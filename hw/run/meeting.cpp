#include "hw/run/meeting.hpp"

#include <fmt/format.h>

#include <chrono>
#include <sstream>

#include "base/error.hpp"

namespace simsync {
namespace {

std::pair<std::string, std::string> split_at_zero(const std::string& text) {
  const std::size_t at = text.find('\0');
  return {text.substr(0, at), at == std::string::npos ? std::string{} : text.substr(at + 1)};
}

std::string joined(const std::string& key, const std::string& value) {
  std::string out = key;
  out.push_back('\0');
  return out + value;
}

}  // namespace

template <class Done>
void Meeting::wait_for(const char* what, double patience_s, Done done) {
  std::unique_lock lock(mutex_);
  const bool in_time =
      changed_.wait_for(lock, std::chrono::duration<double>(patience_s), [&] { return !failure_.empty() || done(); });
  if (!failure_.empty()) throw RunError(failure_);
  if (in_time) return;
  std::string absent;
  if (self_ == 0) absent = missing(ready_.empty() ? addresses_ : (results_.empty() ? ready_ : results_));
  throw RunError(fmt::format("waited {} s for {}{}", patience_s, what, absent));
}

std::string Meeting::missing(const std::map<AgentId, std::string>& have) const {
  std::string out;
  for (AgentId agent = 0; agent < agents_; ++agent)
    if (!have.contains(agent)) out += fmt::format("{}{}", out.empty() ? " (no word from agent " : ", ", agent);
  return out.empty() ? out : out + ")";
}

std::vector<std::string> Meeting::exchange_addresses(const std::string& own) {
  if (self_ == 0) {
    {
      const std::lock_guard lock(mutex_);
      addresses_[0] = own;
    }
    wait("all agents to register", [this] { return static_cast<int>(addresses_.size()) == agents_; });
    for (const auto& [agent, address] : addresses_) table_ += address + "\n";
    for (AgentId agent = 1; agent < agents_; ++agent) links_->send(agent, {.kind = FrameKind::Table}, table_);
  } else {
    links_->send(0, {.kind = FrameKind::Register}, own);
    wait("the addresses of the others", [this] { return !table_.empty(); });
  }
  std::vector<std::string> out;
  std::istringstream lines(table_);
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}

void Meeting::set(const std::string& key, const std::string& value) {
  if (self_ != 0) return links_->send(0, {.kind = FrameKind::SetKey}, joined(key, value));
  std::vector<AgentId> asking;
  {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    asking.swap(asked_[key]);
  }
  changed_.notify_all();
  for (const AgentId agent : asking) links_->send(agent, {.kind = FrameKind::Value}, joined(key, value));
}

std::string Meeting::get(const std::string& key) {
  if (self_ != 0) links_->send(0, {.kind = FrameKind::GetKey}, key);
  wait("another rank's address", [&] { return values_.contains(key); });
  const std::lock_guard lock(mutex_);
  return values_.at(key);
}

void Meeting::answer(AgentId to, const std::string& key) {
  std::string value;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) {
      asked_[key].push_back(to);
      return;
    }
    value = found->second;
  }
  links_->send(to, {.kind = FrameKind::Value}, joined(key, value));
}

void Meeting::wait_for_all() {
  if (self_ != 0) {
    links_->send(0, {.kind = FrameKind::Ready});
    return wait("the start signal", [this] { return go_; });
  }
  {
    const std::lock_guard lock(mutex_);
    ready_[0] = {};
  }
  wait("all agents to be connected", [this] { return static_cast<int>(ready_.size()) == agents_; });
  for (AgentId agent = 1; agent < agents_; ++agent) links_->send(agent, {.kind = FrameKind::Go});
}

std::vector<std::string> Meeting::gather(const std::string& result, double patience_s) {
  if (self_ != 0) {
    {
      const std::lock_guard lock(mutex_);
      delivered_ = true;
    }
    links_->send(0, {.kind = FrameKind::Result}, result);
    wait_for("the end of the run", patience_s, [this] { return over_; });
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    results_[0] = result;
  }
  wait_for("the results of all agents", patience_s, [this] { return static_cast<int>(results_.size()) == agents_; });
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  for (AgentId agent = 1; agent < agents_; ++agent) links_->send(agent, {.kind = FrameKind::Bye});
  std::vector<std::string> out;
  for (auto& [agent, text] : results_) out.push_back(std::move(text));
  return out;
}

bool Meeting::take(AgentId from, const FrameHeader& header, Pieces payload) {
  if (header.kind == FrameKind::GetKey) {
    answer(from, text_of(payload));
    return true;
  }
  if (header.kind == FrameKind::SetKey) {
    const auto [key, value] = split_at_zero(text_of(payload));
    set(key, value);
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    switch (header.kind) {
      case FrameKind::Register:
        addresses_[from] = text_of(payload);
        break;
      case FrameKind::Table:
        table_ = text_of(payload);
        break;
      case FrameKind::Value: {
        const auto [key, value] = split_at_zero(text_of(payload));
        values_[key] = value;
        break;
      }
      case FrameKind::Ready:
        ready_[from] = {};
        break;
      case FrameKind::Go:
        go_ = true;
        break;
      case FrameKind::Result:
        results_[from] = text_of(payload);
        break;
      case FrameKind::Bye:
        over_ = true;
        break;
      case FrameKind::Heard:
        know_failure_.insert(from);
        break;
      default:
        return false;
    }
  }
  changed_.notify_all();
  return true;
}

bool Meeting::left(AgentId peer) {
  bool may = false;
  {
    const std::lock_guard lock(mutex_);
    know_failure_.insert(peer);
    may = self_ == 0 ? results_.contains(peer) : delivered_;
    if (may && peer == 0) over_ = true;
  }
  changed_.notify_all();
  return may;
}

void Meeting::fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    failure_ = why;
  }
  changed_.notify_all();
}

void Meeting::tell_failure(const std::string& why) {
  constexpr std::chrono::seconds kPatience{1};
  const AgentId first = self_ == 0 ? 1 : 0;
  const AgentId end = self_ == 0 ? agents_ : 1;
  for (AgentId agent = first; agent < end; ++agent) links_->send(agent, {.kind = FrameKind::Failed}, why);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] {
    for (AgentId agent = first; agent < end; ++agent)
      if (!know_failure_.contains(agent)) return false;
    return true;
  });
}

}  // namespace simsync
