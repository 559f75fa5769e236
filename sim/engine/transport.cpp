#include "sim/engine/transport.hpp"

#include <algorithm>

namespace simsync::detail {
namespace {

/// Whether the bytes of a transfer lie where it is started, and so are handed to its connection at once: not those that
/// another host is asked for, nor those that have to be packed first.
bool is_there(const Transfer& op) {
  return !op.asks_host() && op.packing.value() <= 0.0;
}

}  // namespace

Transport::Transport(const Scene& scene, Routes& routes, const FlowNetwork& network, Agenda& agenda, Recorder& recorder)
    : scene_(scene),
      routes_(routes),
      agenda_(agenda),
      recorder_(recorder),
      ports_(network, routes),
      buckets_(network, routes),
      sends_(scene.cluster, network, routes),
      control_(scene.plan, scene.groups, scene.topology, ports_, sends_) {}

void Transport::start(const Instance& transfer) {
  const Route& route = routes_.route_of(transfer);
  const Transfer& op = scene_.op_of(transfer).transfer();
  if (route.connection >= 0 && is_there(op))
    sends_.hand_over(route.connection, route.path, op.bytes + route.extra_bytes);
  agenda_.after(op.setup + control_.request(transfer) + route.delay,
                {.event = route.path < 0 ? Event::WorkEnds : Event::SetupEnds, .instance = transfer});
}

void Transport::setup_ended(const Instance& transfer) {
  const Route& route = routes_.route_of(transfer);
  const Transfer& op = scene_.op_of(transfer).transfer();
  const double bytes = op.bytes + route.extra_bytes;
  if (route.connection >= 0) {
    if (!is_there(op)) sends_.hand_over(route.connection, route.path, bytes);
    Connection& connection = connection_at(route.connection);
    if (connection.in_service >= op.streams)
      return wait_behind(connection, {transfer, agenda_.now(), bytes, op.first_turn});
    ++connection.in_service;
  }
  const Seconds wait = ports_.first_byte(route.path, bytes);
  if (wait.value() <= 0.0) return port_reached(transfer);
  agenda_.after(wait, {.event = Event::PortReached, .instance = transfer});
}

/// The stream of its connection, if it has one, is its own.
void Transport::port_reached(const Instance& transfer) {
  const Route& route = routes_.route_of(transfer);
  const Transfer& op = scene_.op_of(transfer).transfer();
  const Connection::Waiting all{transfer, agenda_.now(), op.bytes + route.extra_bytes, op.first_turn};
  if (route.connection >= 0) return start_turn(all, -1);
  start_bytes(all, all.bytes, {.event = Event::FlowEnds, .instance = transfer}, -1);
}

Transport::Connection& Transport::connection_at(int number) {
  const auto i = static_cast<std::size_t>(number);
  if (i >= connections_.size()) connections_.resize(i + 1);
  return connections_[i];
}

void Transport::wait_behind(Connection& connection, const Connection::Waiting& last) {
  connection.waiting.push_back(last);
  ports_.behind(routes_.route_of(last.instance).path, last.bytes);
}

/// The transfer has a stream of its connection.
void Transport::start_turn(const Connection::Waiting& next, std::int32_t cause) {
  const double bytes = std::min(next.bytes, next.turn);
  Pending end{.event = Event::FlowEnds, .instance = next.instance};
  if (bytes < next.bytes) {
    end.event = Event::TurnEnds;
    end.bytes_left = next.bytes - bytes;
  }
  start_bytes(next, bytes, end, cause);
}

/// Its stream goes to whoever has waited longest.
void Transport::turn_ended(const Instance& transfer, double bytes_left) {
  wait_behind(connection_at(routes_.route_of(transfer).connection),
              {transfer, agenda_.now(), bytes_left, scene_.op_of(transfer).transfer().later_turn});
  leave(transfer, -1);
}

void Transport::leave(const Instance& transfer, std::int32_t cause) {
  const Route& route = routes_.route_of(transfer);
  if (route.connection < 0) return;
  Connection& connection = connection_at(route.connection);
  --connection.in_service;
  if (connection.waiting.empty() || stopped_) return;
  const Connection::Waiting next = connection.waiting.front();
  connection.waiting.pop_front();
  ports_.behind(routes_.route_of(next.instance).path, -next.bytes);
  ++connection.in_service;
  start_turn(next, cause);
}

void Transport::start_bytes(const Connection::Waiting& next, double bytes, Pending end, std::int32_t cause) {
  const Route& route = routes_.route_of(next.instance);
  const bool first = next.bytes == scene_.op_of(next.instance).bytes() + route.extra_bytes;
  end.flow = recorder_.flow({.op = next.instance.op,
                             .group = next.instance.group,
                             .iteration = next.instance.iteration,
                             .path = route.path,
                             .ready = next.since,
                             .bytes = bytes,
                             .message_bytes = first ? std::min(bytes, route.extra_bytes) : 0.0,
                             .cause = cause},
                            agenda_.now());
  if (route.connection >= 0) sends_.start(route.connection, bytes);
  start_flow(route.path, bytes, end);
}

void Transport::start_flow(int path, double bytes, Pending end) {
  end.path = path;
  end.bytes = bytes;
  agenda_.after_flow(path, buckets_.left_of(path, bytes), end);
}

void Transport::flow_ended(const Pending& end) {
  buckets_.ended(end.path);
  if (end.event != Event::FlowEnds && end.event != Event::TurnEnds) return;
  const Route& route = routes_.route_of(end.instance);
  if (route.connection >= 0) sends_.end(route.connection, end.bytes);
}

}  // namespace simsync::detail
