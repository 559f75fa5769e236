// AutoDist's strategy message as values. Which numbers its fields have: strategy.proto.
#pragma once
#include <string>
#include <variant>
#include <vector>

namespace simsync {

struct ServerMessage {
  std::string destination;  ///< `10.0.0.1:CPU:0`
  bool local_replication = false;
  bool sync = true;
  int staleness = 0;
  friend bool operator==(const ServerMessage&, const ServerMessage&) = default;
};

enum class MessageSpec { Auto = 0, Nccl = 1, Ring = 2 };
enum class MessageCompressor { None = 0, Cast = 1, CastWithFeedback = 2, PowerSgd = 3 };

struct AllReduceMessage {
  MessageSpec spec = MessageSpec::Auto;
  MessageCompressor compressor = MessageCompressor::None;
  int group = 0;
  friend bool operator==(const AllReduceMessage&, const AllReduceMessage&) = default;
};

struct NodeMessage {
  std::string variable;  ///< `fc6/kernel:0`
  std::variant<std::monostate, ServerMessage, AllReduceMessage> synchronizer;
  std::string partitioner;  ///< shards along each axis, `4,1`; empty: whole
  std::vector<NodeMessage> parts;
  friend bool operator==(const NodeMessage&, const NodeMessage&) = default;
};

struct StrategyMessage {
  std::string id;
  std::string path;
  std::vector<NodeMessage> nodes;
  std::vector<std::string> replicas;  ///< `10.0.0.1:GPU:0`
  friend bool operator==(const StrategyMessage&, const StrategyMessage&) = default;
};

/// As protobuf has it on the wire. @throws CapabilityError where this build has no protobuf.
std::string to_bytes(const StrategyMessage& message);
/// `file` stands for the bytes in messages. @throws InputError when they are no such message; CapabilityError.
StrategyMessage parse_message(const std::string& bytes, const std::string& file);

extern "C" {
/// The same in the module that links protobuf, as load_wire.cpp calls it.
void simsync_message_to_bytes(const StrategyMessage& message, std::string& out);
bool simsync_parse_message(const std::string& bytes, StrategyMessage& out);
}

}  // namespace simsync
