// The one place that knows SimGrid.
//
// SimGrid allows one engine per process and no new hosts once it has run. So this class keeps a pool of links and
// of "path" hosts in star zones (a new page of them whenever the pool runs short) and gives every problem its
// own routes: a path host's way up is the list of links to cross, every flow ends at the page's sink, whose way
// down is empty.
#include <signal.h>
#include <xbt/log.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "sim/engine/network_events.hpp"

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
  std::int64_t number = 0;
  int slot = 0;  ///< its own place in the pool
  bool has_ended = false;
};

class SimGridNetwork final : public detail::NetworkEvents {
public:
  SimGridNetwork();
  ~SimGridNetwork() override;
  SimGridNetwork(const SimGridNetwork&) = delete;
  SimGridNetwork& operator=(const SimGridNetwork&) = delete;

  void begin(const std::vector<BytesPerSecond>& bandwidths) override;
  int add_link(BytesPerSecond bandwidth) override;
  void set_bandwidth(int link, BytesPerSecond bandwidth) override;
  int add_path(const std::vector<int>& links, BytesPerSecond cap) override;
  void visit_flows(int link, const std::function<void(int, double)>& visit) const override;
  [[nodiscard]] std::size_t flows_across(int link) const override;
  void run(Handler handler, std::function<void()> instant_over) override;
  [[nodiscard]] Seconds now() const override;

private:
  [[nodiscard]] double clock() const override;
  void wake_at(double date) override;
  void launch(const Start& flow) override;
  void forget(const End& end) override;
  struct State;
  std::unique_ptr<State> state_;
};

struct SimGridNetwork::State {
  struct Page {
    s4u::NetZone* zone = nullptr;
    s4u::Host* sink = nullptr;
  };
  struct PathHost {
    s4u::Host* host = nullptr;
    std::size_t page = 0;
    std::vector<int> links;  ///< by number
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
  double woken_at = -1.0;     ///< the last date that happen() is to be called at
  std::exception_ptr thrown;  ///< by a handler; SimGrid must come to an end by itself before it goes on

  std::vector<std::vector<Flow*>> across;  ///< by link
  std::vector<std::unique_ptr<Flow>> flows;
  std::vector<int> free_flows;

  void add_page();
  void go_to(double date);  ///< with nothing under way
  s4u::Link* cap_link(double cap);
  Flow& free_flow();
  void free_all_flows();
  void widen(const PathHost& path, bool wide);
};

SimGridNetwork::SimGridNetwork() : state_(std::make_unique<State>()) {
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
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
    auto* flow = activity.get_data<Flow>();
    if (flow == nullptr || state_->thrown) return;
    flow->has_ended = true;
    note_end({.number = flow->number, .flow = flow->slot, .token = flow->token});
    wake_at(clock());
  });
  state_->add_page();
  // SimGrid's clock only goes forward. A double tells dates between 2^16 and 2^17 seconds 15 ps apart, wherever in this
  // range a problem begins: so the same problem has the same answer, to the last bit, whatever was asked before.
  constexpr double kFirstDate = 65536.0;
  state_->go_to(kFirstDate);
}

SimGridNetwork::~SimGridNetwork() = default;

void SimGridNetwork::State::go_to(double date) {
  if (date <= s4u::Engine::get_clock()) return;
  simgrid::kernel::timer::Timer::set(date, [] {});
  engine->run();
}

void SimGridNetwork::State::add_page() {
  // Hosts and links take longer to make than a small problem to solve: every page doubles them, up to 2048 a page.
  constexpr std::size_t kFewest = 256;
  constexpr std::size_t kMost = 2048;
  const std::size_t count = std::clamp(hosts.size(), kFewest, kMost);
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
  for (std::size_t i = 0; i < count; ++i) {
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

void SimGridNetwork::begin(const std::vector<BytesPerSecond>& bandwidths) {
  State& s = *state_;
  clear_events();
  s.hosts_used = 0;
  s.caps.clear();
  s.changed.clear();
  s.links_used = 0;
  s.across.clear();
  s.woken_at = -1.0;
  // Half of the dates' resolution is rounded to the even one of two dates: which it is must not depend on the origin.
  constexpr double kMicrosecond = 0x1p-20;
  s.go_to(kMicrosecond * std::ceil(s4u::Engine::get_clock() / kMicrosecond));
  s.origin = s4u::Engine::get_clock();
  for (const BytesPerSecond bandwidth : bandwidths) add_link(bandwidth);
}

int SimGridNetwork::add_link(BytesPerSecond bandwidth) {
  State& s = *state_;
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  if (s.links_used == s.links.size()) s.add_page();
  s.links[s.links_used]->set_bandwidth(bandwidth.value());
  s.across.emplace_back();
  return static_cast<int>(s.links_used++);
}

void SimGridNetwork::set_bandwidth(int link, BytesPerSecond bandwidth) {
  State& s = *state_;
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  s4u::Link* const there = s.links.at(static_cast<std::size_t>(link));
  const auto [entry, first] = s.changed.try_emplace(link, State::Change{there->get_bandwidth(), 0.0});
  entry->second.now = bandwidth.value();
  there->set_bandwidth(bandwidth.value());
}

int SimGridNetwork::add_path(const std::vector<int>& links, BytesPerSecond cap) {
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

s4u::Link* SimGridNetwork::State::cap_link(double cap) {
  const auto [entry, fresh] = caps.try_emplace(cap, nullptr);
  if (!fresh) return entry->second;
  if (caps.size() > cap_links.size()) add_page();
  entry->second = cap_links[caps.size() - 1];
  entry->second->set_bandwidth(cap);
  return entry->second;
}

double SimGridNetwork::clock() const {
  return s4u::Engine::get_clock();
}

void SimGridNetwork::wake_at(double date) {
  if (state_->woken_at == date) return;
  state_->woken_at = date;
  simgrid::kernel::timer::Timer::set(date, [this] {
    state_->woken_at = -1.0;
    if (state_->thrown) return;
    try {
      happen();
    } catch (...) {
      state_->thrown = std::current_exception();
    }
  });
}

Flow& SimGridNetwork::State::free_flow() {
  if (free_flows.empty()) {
    free_flows.push_back(static_cast<int>(flows.size()));
    flows.push_back(std::make_unique<Flow>());
    flows.back()->slot = free_flows.back();
  }
  Flow& flow = *flows[static_cast<std::size_t>(free_flows.back())];
  free_flows.pop_back();
  return flow;
}

void SimGridNetwork::State::free_all_flows() {
  free_flows.clear();
  for (const auto& flow : flows) {
    flow->comm.reset();
    free_flows.push_back(flow->slot);
  }
}

void SimGridNetwork::launch(const Start& wanted) {
  State& s = *state_;
  Flow& flow = s.free_flow();
  flow.token = wanted.token;
  flow.path = wanted.path;
  flow.number = wanted.number;
  flow.has_ended = false;
  const State::PathHost& path = s.hosts[static_cast<std::size_t>(wanted.path)];
  for (const int link : path.links) s.across[static_cast<std::size_t>(link)].push_back(&flow);
  flow.comm = s4u::Comm::sendto_init();
  flow.comm->set_data(&flow);
  flow.comm->set_payload_size(static_cast<std::uint64_t>(wanted.bytes));
  flow.comm->set_source(path.host);
  s.widen(path, true);
  flow.comm->set_destination(s.pages[path.page].sink);  // the last setter starts it
  s.widen(path, false);
}

void SimGridNetwork::State::widen(const PathHost& path, bool wide) {
  if (changed.empty()) return;
  for (const int link : path.links) {
    const auto found = changed.find(link);
    if (found == changed.end() || found->second.first <= found->second.now) continue;
    links[static_cast<std::size_t>(link)]->set_bandwidth(wide ? found->second.first : found->second.now);
  }
}

void SimGridNetwork::forget(const End& end) {
  State& s = *state_;
  Flow& flow = *s.flows[static_cast<std::size_t>(end.flow)];
  flow.comm.reset();
  s.free_flows.push_back(flow.slot);
  for (const int link : s.hosts[static_cast<std::size_t>(flow.path)].links) {
    auto& there = s.across[static_cast<std::size_t>(link)];
    const auto own = std::find(there.begin(), there.end(), &flow);
    *own = there.back();
    there.pop_back();
  }
}

void SimGridNetwork::visit_flows(int link, const std::function<void(int, double)>& visit) const {
  for (const Flow* flow : state_->across.at(static_cast<std::size_t>(link)))
    visit(flow->path, flow->has_ended ? 0.0 : flow->comm->get_remaining());
}

std::size_t SimGridNetwork::flows_across(int link) const {
  return state_->across.at(static_cast<std::size_t>(link)).size();
}

void SimGridNetwork::run(Handler handler, std::function<void()> instant_over) {
  begin_events(std::move(handler), std::move(instant_over));
  state_->engine->run();
  if (const std::exception_ptr thrown = std::exchange(state_->thrown, nullptr)) {
    state_->free_all_flows();
    std::rethrow_exception(thrown);
  }
  end_events();
}

Seconds SimGridNetwork::now() const {
  return Seconds{s4u::Engine::get_clock() - state_->origin};
}

}  // namespace

FlowNetwork& simgrid_network() {
  // Never destroyed: SimGrid prints a backtrace for every flow that an early end leaves unfinished.
  static SimGridNetwork& network = *new SimGridNetwork;
  return network;
}

FlowNetwork* simsync_simgrid_network() {
  return &simgrid_network();
}

}  // namespace simsync
