#include "hw/run/agent.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>

#include "hw/run/meeting.hpp"

namespace simsync {
namespace {

/// Data streams between two agents: as many as the plan's transfers use at a time.
int data_streams(const Plan& plan) {
  int most = 1;
  for (const Op& op : plan.ops)
    if (const auto* moved = std::get_if<Transfer>(&op.body)) most = std::max(most, moved->streams);
  return most;
}

class Agent {
public:
  Agent(const Plan& plan, const AgentOptions& options)
      : plan_(plan),
        options_(options),
        roles_(plan),
        buffers_(roles_, options.self, options.run.optimizer, options.run.iterations_in_all()),
        meeting_(options.self, roles_.agents(), options.run.timeout_s),
        links_(options.self, options.self == 0 ? options.agent0_address : options.address + ":0",
               {.frame = [this](AgentId from, const FrameHeader& h, Pieces p) { take(from, h, p); },
                .lost = [this](AgentId peer, const std::string& why) { lost(peer, why); }}) {
    meeting_.use(links_);
  }
  ~Agent() { links_.close(); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  std::optional<Measurement> run() {
    try {
      return take_part();
    } catch (const std::exception& e) {
      meeting_.tell_failure(e.what());
      throw;
    }
  }

private:
  std::optional<Measurement> take_part() {
    const double timeout = options_.run.timeout_s;
    const int iterations = options_.run.iterations_in_all();
    if (options_.self != 0) links_.connect(0, options_.agent0_address, data_streams(plan_), timeout);
    const auto addresses = meeting_.exchange_addresses(fmt::format("{}:{}", options_.address, links_.port()));
    // Everybody has a connection with agent 0 by now.
    if (options_.self != 0 && !roles_.is_server(options_.self))
      for (AgentId peer = plan_.rank_count(); peer < roles_.agents(); ++peer)
        links_.connect(peer, addresses[static_cast<std::size_t>(peer)], data_streams(plan_), timeout);
    device_ = make_device();
    const ExecutorOptions how{.self = options_.self,
                              .iterations = iterations,
                              .recorded = options_.run.recorded + 1,
                              .slowdown = options_.slowdown,
                              .timeout_s = timeout};
    executor_ = std::make_unique<Executor>(roles_, how, inbox_, links_, buffers_, device_);
    meeting_.wait_for_all();
    const AgentRecord record = executor_->run();
    // Who is asynchronous may be through long before the others, each step of which has the timeout of its own.
    const double patience = plan_.in_lock_step() ? timeout : timeout * iterations;
    const auto texts = meeting_.gather(to_text(record), patience);
    if (options_.self != 0) return std::nullopt;
    std::vector<AgentRecord> records;
    for (const auto& text : texts) records.push_back(agent_record(text));
    return merge(records, options_.run.warm_up, plan_.steps_vary());
  }

  DeviceOfRank make_device() {
    if (roles_.is_server(options_.self)) return {};
    const bool any =
        std::any_of(plan_.ops.begin(), plan_.ops.end(), [](const Op& op) { return op.kind() == OpKind::Collective; });
    CollectiveRequest group{options_.self, plan_.rank_count(), options_.address, options_.run.timeout_s};
    for (const Grouping& grouping : plan_.groupings) {
      const int own = grouping.group_of(options_.self);
      const auto ranks = own < 0 ? std::span<const int>{} : grouping.ranks(own);
      group.groups.emplace_back(ranks.begin(), ranks.end());
    }
    const int gpu = plan_.ranks[static_cast<std::size_t>(options_.self)].gpu;
    if (options_.devices) return options_.devices({.group = group, .gpu = gpu, .collectives = any}, meeting_);
    return {.device = nullptr, .collectives = any ? make_gloo(group, meeting_) : nullptr};
  }

  void take(AgentId from, const FrameHeader& header, Pieces payload) {
    const Event event{
        .instance = {header.op, header.group}, .iteration = header.iteration, .from = from, .at = now_s()};
    const auto push = [&](Event::Kind kind, std::string text = {}) {
      Event out = event;
      out.kind = kind;
      out.text = std::move(text);
      inbox_.push(std::move(out));
    };
    switch (header.kind) {
      case FrameKind::Data:
        try {
          if (buffers_.take(header, payload)) push(Event::Kind::Arrived);
        } catch (const WrongResult& e) {
          push(Event::Kind::Failed, e.what());
        }
        return;
      case FrameKind::Ended:
        return push(Event::Kind::Notified);
      case FrameKind::Begin:
        return push(Event::Kind::Begin);
      case FrameKind::Ask:
        return push(Event::Kind::Ask);
      case FrameKind::Failed: {
        const std::string why = text_of(payload);
        meeting_.fail(why);
        push(Event::Kind::Failed, why);
        return links_.send(from, {.kind = FrameKind::Heard});
      }
      default:
        (void)meeting_.take(from, header, payload);
    }
  }

  void lost(AgentId peer, const std::string& why) {
    if (meeting_.left(peer)) return;
    const std::string text = fmt::format("{} lost the connection to {}: {}", name_of(plan_, options_.self),
                                         name_of(plan_, peer), why.empty() ? "it ended" : why);
    meeting_.fail(text);
    inbox_.push({.kind = Event::Kind::Lost, .from = peer, .at = now_s(), .text = text});
  }

  const Plan& plan_;
  AgentOptions options_;
  Roles roles_;
  Buffers buffers_;
  Inbox inbox_;
  Meeting meeting_;
  Links links_;
  // Not take_part()'s own: the executor's end waits for a collective under way, which may wait for ranks that end only
  // once tell_failure() has told them.
  DeviceOfRank device_;
  std::unique_ptr<Executor> executor_;
};

/// Gloo writes to peers that may be gone: that shall be an error that can be told, not this process's end. For the
/// whole process, in which there is one agent.
class NoSigpipe {
public:
  NoSigpipe() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~NoSigpipe() { std::signal(SIGPIPE, before_); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

private:
  void (*before_)(int);
};

}  // namespace

std::optional<Measurement> run_agent(const Plan& plan, const AgentOptions& options) {
  prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should
  const NoSigpipe no_sigpipe;
  return Agent(plan, options).run();
}

std::string name_of(const Plan& plan, AgentId agent) {
  if (agent < plan.rank_count())
    return fmt::format("worker {} (node {})", agent, plan.ranks[static_cast<std::size_t>(agent)].node);
  return "server on " + name_of(plan.servers[static_cast<std::size_t>(agent - plan.rank_count())]);
}

}  // namespace simsync
