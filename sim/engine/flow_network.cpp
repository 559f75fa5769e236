#include "sim/engine/flow_network.hpp"

#include <signal.h>
#include <xbt/log.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>

#include "base/error.hpp"

namespace simsync {
namespace s4u = simgrid::s4u;

namespace {

/// Every setting that differs from SimGrid's defaults, with its reason.
constexpr std::array kSettings{
    "network/model:CM02",      // no LV08 factors: bandwidth and latency come from the Calibration
    "network/crosstraffic:0",  // acknowledgements are part of a link's measured efficiency
    "network/TCP-gamma:0",     // no window/latency cap: per-flow caps are explicit
    "network/optim:Lazy",      // only flows whose share changed are touched
    "surf/precision:1e-10",    // dates closer than this fall together; a message may last less than a microsecond
    "maxmin/precision:1e-9",   // shares of fast and slow links in one problem
};
constexpr std::array kQuiet{"surf_maxmin.thresh:critical", "xbt_cfg.thresh:warning"};

/// Puts the handlers of these signals back when it goes.
class SignalHandlers {
public:
  SignalHandlers() {
    for (std::size_t i = 0; i < kTaken.size(); ++i) sigaction(kTaken[i], nullptr, &actions_[i]);
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
  ~SignalHandlers() {
    for (std::size_t i = 0; i < kTaken.size(); ++i) sigaction(kTaken[i], &actions_[i], nullptr);
  }

private:
  static constexpr std::array kTaken{SIGINT, SIGSEGV};
  std::array<struct sigaction, kTaken.size()> actions_{};
};

struct Flow {
  s4u::CommPtr comm;
  FlowNetwork::Token token = 0;
  int path = 0;
  std::size_t slot = 0;  ///< its own place in the pool
};

}  // namespace

struct FlowNetwork::State {
  struct Page {
    s4u::NetZone* zone = nullptr;
    s4u::Host* sink = nullptr;
  };
  struct PathHost {
    s4u::Host* host = nullptr;
    std::size_t page = 0;
    std::vector<int> links;  ///< by number
  };
  struct PendingFlow {
    int path;
    double bytes;
    Token token;
  };
  struct Delay {
    double date = -1.0;
    std::vector<Token> tokens;
  };

  std::unique_ptr<s4u::Engine> engine;
  std::vector<Page> pages;
  std::vector<PathHost> hosts;
  std::vector<s4u::Link*> links;
  std::size_t hosts_used = 0;
  std::size_t links_used = 0;
  // SimGrid 3.32 forgets the rate of a Comm between hosts, so a capped path also crosses a link of that rate on which
  // flows do not share ("fatpipe").
  std::vector<s4u::Link*> cap_links;
  std::map<double, s4u::Link*> caps;
  // SimGrid 3.32 caps a flow for good at the rate that the narrowest link on its way has when it starts. So flows start
  // while links whose rate has been changed have their greater one.
  struct Change {
    double first;  ///< bytes per second
    double now;
  };
  std::map<int, Change> changed;  ///< by link
  double origin = 0.0;
  std::int64_t started = 0;
  std::int64_t in_flight = 0;
  std::int64_t work = 0;
  Handler handler;

  std::vector<std::vector<Flow*>> across;  ///< by link
  std::vector<std::unique_ptr<Flow>> flows;
  std::vector<std::size_t> free_flows;
  std::vector<s4u::CommPtr> ended;
  std::vector<PendingFlow> pending;
  std::vector<PendingFlow> starting;  ///< by flush(); both keep their memory
  bool flush_armed = false;
  std::shared_ptr<Delay> last_delay;

  void add_page();
  void go_to(double date);  ///< with nothing under way
  s4u::Link* cap_link(double cap);
  void flush();
  void launch(const PendingFlow& flow);
  void widen(const PathHost& path, bool wide);
  void end(Flow& flow);
};

FlowNetwork& FlowNetwork::instance() {
  // Never destroyed: SimGrid prints a backtrace for every flow that an early end leaves unfinished.
  static FlowNetwork& network = *new FlowNetwork;
  return network;
}

FlowNetwork::FlowNetwork() : state_(std::make_unique<State>()) {
  std::vector<std::string> arguments{"simsync"};
  for (const char* setting : kSettings) arguments.push_back(std::string("--cfg=") + setting);
  for (const char* setting : kQuiet) arguments.push_back(std::string("--log=") + setting);
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  // SimGrid announces every changed setting on stderr before its own log filter is read.
  xbt_log_control_set("xbt_cfg.thresh:warning");
  int argc = static_cast<int>(argv.size());
  // SimGrid's handlers print its state and exit with 1; a shell expects a death by the signal.
  const SignalHandlers before;
  state_->engine = std::make_unique<s4u::Engine>(&argc, argv.data());
  State* state = state_.get();
  s4u::Activity::on_completion_cb([state](const s4u::Activity& activity) {
    auto* flow = activity.get_data<Flow>();
    if (flow == nullptr) return;
    const Token token = flow->token;
    state->end(*flow);
    state->handler(token);
  });
  state_->add_page();
  // SimGrid's clock only goes forward. A double tells dates between 2^16 and 2^17 seconds 15 ps apart, wherever in this
  // range a problem begins: so the same problem has the same answer, to the last bit, whatever was asked before.
  constexpr double kFirstDate = 65536.0;
  state_->go_to(kFirstDate);
}

FlowNetwork::~FlowNetwork() = default;

void FlowNetwork::State::go_to(double date) {
  if (date <= s4u::Engine::get_clock()) return;
  simgrid::kernel::timer::Timer::set(date, [] {});
  engine->run();
}

void FlowNetwork::State::add_page() {
  constexpr int kHostsPerPage = 2048;
  constexpr int kCapsPerPage = 64;
  const std::string name = "page" + std::to_string(pages.size());
  auto* zone = s4u::create_star_zone(name);
  if (!pages.empty()) {
    // Only the first zone is the root; a later one takes over its models and lives beside it.
    auto* from = pages.front().zone->get_impl();
    auto* to = zone->get_impl();
    to->set_network_model(from->get_network_model());
    to->set_cpu_pm_model(from->get_cpu_pm_model());
    to->set_disk_model(from->get_disk_model());
    to->set_host_model(from->get_host_model());
  }
  Page page{zone, zone->create_host(name + "-sink", 1.0)};
  zone->add_route(nullptr, page.sink->get_netpoint(), nullptr, nullptr, std::vector<s4u::LinkInRoute>{}, false);
  for (int i = 0; i < kHostsPerPage; ++i) {
    const std::string number = name + "-" + std::to_string(i);
    hosts.push_back({zone->create_host(number, 1.0), pages.size()});
    auto* link = zone->create_link(number + "-link", 1.0);
    link->set_latency(0.0);
    link->seal();
    links.push_back(link);
  }
  for (int i = 0; i < kCapsPerPage; ++i) {
    auto* link = zone->create_link(name + "-cap" + std::to_string(i), 1.0);
    link->set_latency(0.0);
    link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    link->seal();
    cap_links.push_back(link);
  }
  zone->seal();
  pages.push_back(page);
}

void FlowNetwork::begin(const std::vector<BytesPerSecond>& bandwidths) {
  State& s = *state_;
  SIMSYNC_ASSERT(s.pending.empty());
  s.hosts_used = 0;
  s.caps.clear();
  s.changed.clear();
  s.links_used = 0;
  s.across.clear();
  s.started = 0;
  s.in_flight = 0;
  s.work = 0;
  // Half of the dates' resolution is rounded to the even one of two dates: which it is must not depend on the origin.
  constexpr double kMicrosecond = 0x1p-20;
  s.go_to(kMicrosecond * std::ceil(s4u::Engine::get_clock() / kMicrosecond));
  s.origin = s4u::Engine::get_clock();
  for (const BytesPerSecond bandwidth : bandwidths) add_link(bandwidth);
}

int FlowNetwork::add_link(BytesPerSecond bandwidth) {
  State& s = *state_;
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  if (s.links_used == s.links.size()) s.add_page();
  s.links[s.links_used]->set_bandwidth(bandwidth.value());
  s.across.emplace_back();
  return static_cast<int>(s.links_used++);
}

void FlowNetwork::set_bandwidth(int link, BytesPerSecond bandwidth) {
  State& s = *state_;
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  s4u::Link* const there = s.links.at(static_cast<std::size_t>(link));
  const auto [entry, first] = s.changed.try_emplace(link, State::Change{there->get_bandwidth(), 0.0});
  entry->second.now = bandwidth.value();
  there->set_bandwidth(bandwidth.value());
}

int FlowNetwork::add_path(const std::vector<int>& links, BytesPerSecond cap) {
  State& s = *state_;
  SIMSYNC_ASSERT(!links.empty());
  std::vector<s4u::LinkInRoute> route;
  route.reserve(links.size() + 1);
  double narrowest = std::numeric_limits<double>::infinity();
  for (const int id : links) {
    route.emplace_back(s.links.at(static_cast<std::size_t>(id)));
    const auto changed = s.changed.find(id);
    const double now = route.back().get_link()->get_bandwidth();
    narrowest = std::min(narrowest, changed == s.changed.end() ? now : std::max(now, changed->second.first));
  }
  if (cap.value() < narrowest) route.emplace_back(s.cap_link(cap.value()));
  if (s.hosts_used == s.hosts.size()) s.add_page();
  State::PathHost& path = s.hosts[s.hosts_used];
  path.links = links;
  s.pages[path.page].zone->add_route(path.host->get_netpoint(), nullptr, nullptr, nullptr, route, false);
  return static_cast<int>(s.hosts_used++);
}

s4u::Link* FlowNetwork::State::cap_link(double cap) {
  const auto [entry, fresh] = caps.try_emplace(cap, nullptr);
  if (!fresh) return entry->second;
  if (caps.size() > cap_links.size()) add_page();
  entry->second = cap_links[caps.size() - 1];
  entry->second->set_bandwidth(cap);
  return entry->second;
}

void FlowNetwork::start_flow(int path, double bytes, Token token) {
  constexpr double kHalfByte = 0.5;
  constexpr int kStartAndEnd = 256;
  State& s = *state_;
  ++s.started;
  s.work += kStartAndEnd;
  if (bytes < kHalfByte) return after(Seconds{0.0}, token);
  s.work += ++s.in_flight;
  // Starts of one instant are collected: SimGrid 3.32 walks the list of all flows in flight at each completion,
  // and the list is shorter when the flows that end together are gone before their successors arrive.
  s.pending.push_back({path, bytes, token});
  if (s.flush_armed) return;
  s.flush_armed = true;
  simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock(), [state = state_.get()] { state->flush(); });
}

void FlowNetwork::State::flush() {
  flush_armed = false;
  ended.clear();
  starting.swap(pending);
  for (const PendingFlow& flow : starting) launch(flow);
  starting.clear();
}

void FlowNetwork::State::launch(const PendingFlow& wanted) {
  if (free_flows.empty()) {
    free_flows.push_back(flows.size());
    flows.push_back(std::make_unique<Flow>());
    flows.back()->slot = flows.size() - 1;
  }
  Flow& flow = *flows[free_flows.back()];
  free_flows.pop_back();
  flow.token = wanted.token;
  flow.path = wanted.path;
  const PathHost& path = hosts[static_cast<std::size_t>(wanted.path)];
  for (const int link : path.links) across[static_cast<std::size_t>(link)].push_back(&flow);
  flow.comm = s4u::Comm::sendto_init();
  flow.comm->set_data(&flow);
  flow.comm->set_payload_size(static_cast<std::uint64_t>(std::llround(wanted.bytes)));
  flow.comm->set_source(path.host);
  widen(path, true);
  flow.comm->set_destination(pages[path.page].sink);  // the last setter starts it
  widen(path, false);
}

void FlowNetwork::State::widen(const PathHost& path, bool wide) {
  if (changed.empty()) return;
  for (const int link : path.links) {
    const auto found = changed.find(link);
    if (found == changed.end() || found->second.first <= found->second.now) continue;
    links[static_cast<std::size_t>(link)]->set_bandwidth(wide ? found->second.first : found->second.now);
  }
}

void FlowNetwork::State::end(Flow& flow) {
  --in_flight;
  ended.push_back(std::move(flow.comm));  // SimGrid still looks at it when its callback has returned
  free_flows.push_back(flow.slot);
  for (const int link : hosts[static_cast<std::size_t>(flow.path)].links) {
    auto& there = across[static_cast<std::size_t>(link)];
    const auto own = std::find(there.begin(), there.end(), &flow);
    *own = there.back();
    there.pop_back();
  }
}

void FlowNetwork::visit_flows(int link, const std::function<void(int, double)>& visit) const {
  for (const Flow* flow : state_->across.at(static_cast<std::size_t>(link)))
    visit(flow->path, flow->comm->get_remaining());
}

double FlowNetwork::starting_bytes(int path) const {
  double bytes = 0.0;
  for (const State::PendingFlow& flow : state_->pending)
    if (flow.path == path) bytes += flow.bytes;
  return bytes;
}

std::size_t FlowNetwork::flows_across(int link) const {
  return state_->across.at(static_cast<std::size_t>(link)).size();
}

void FlowNetwork::after(Seconds delay, Token token) {
  State& s = *state_;
  const double date = s4u::Engine::get_clock() + std::max(0.0, delay.value());
  // Delays that end at the very same instant share one timer.
  if (s.last_delay && s.last_delay->date == date) {
    s.last_delay->tokens.push_back(token);
    return;
  }
  auto shared = std::make_shared<State::Delay>(State::Delay{date, {token}});
  s.last_delay = shared;
  simgrid::kernel::timer::Timer::set(date, [state = state_.get(), shared] {
    shared->date = -1.0;  // closed: a later delay of zero must get a timer of its own
    for (const Token t : shared->tokens) state->handler(t);
  });
}

void FlowNetwork::run(Handler handler) {
  state_->handler = std::move(handler);
  state_->engine->run();
  state_->handler = nullptr;
  state_->last_delay.reset();
  state_->ended.clear();
}

Seconds FlowNetwork::now() const {
  return Seconds{s4u::Engine::get_clock() - state_->origin};
}

std::int64_t FlowNetwork::flows_started() const {
  return state_->started;
}

std::int64_t FlowNetwork::work() const {
  return state_->work;
}

}  // namespace simsync
