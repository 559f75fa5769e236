#include "hw/run/links.hpp"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "base/error.hpp"

namespace simsync {
namespace {

constexpr const char* kMethod = "/simsync.Run/Stream";
constexpr const char* kAgentKey = "simsync-agent";
constexpr const char* kStreamKey = "simsync-stream";

/// gRPC's last shutdown joins its threads, and one that polls a closed connection may sleep for 10 s before it notices
/// (gRPC 1.51, Executor::ShutdownAll). So gRPC stays started until the process ends.
void keep_grpc_started() {
  static const bool kStarted = [] {
    grpc_init();
    return true;
  }();
  (void)kStarted;
}

/// One streaming call as both of its ends see it: a queue of frames to write, one read at a time.
class Stream {
public:
  virtual ~Stream() = default;
  using OnFrame = std::function<void(const FrameHeader&, Pieces)>;
  using OnEnd = std::function<void(const std::string&)>;

  void write(const grpc::ByteBuffer& frame, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    queued_ += bytes;
    queue_.emplace_back(frame, bytes);
    if (queue_.size() == 1) start_write(&queue_.front().first);
  }
  [[nodiscard]] std::size_t queued() const { return queued_; }
  virtual void cancel() = 0;
  /// Whether gRPC has let go of it, after waiting for that at most so many seconds.
  bool wait_until_done(double timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(timeout), [this] { return done_; });
  }

protected:
  void written(bool ok) {
    const std::lock_guard lock(mutex_);
    queued_ -= queue_.front().second;
    queue_.pop_front();
    if (ok && !ended_ && !queue_.empty()) start_write(&queue_.front().first);
    changed_.notify_all();
  }
  void read(bool ok) {
    if (!ok) return;
    std::vector<grpc::Slice> slices;
    if (incoming_.Dump(&slices).ok()) deliver(slices);
    start_read(&incoming_);
  }
  /// gRPC takes no more writes once an end of the call is on its way.
  void stop_writing() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// The last thing that gRPC says.
  void end(const std::string& why) {
    stop_writing();
    if (on_end_) on_end_(why);
    const std::lock_guard lock(mutex_);
    why_ = why;
    done_ = true;
    changed_.notify_all();
  }
  virtual void start_write(const grpc::ByteBuffer* frame) = 0;
  virtual void start_read(grpc::ByteBuffer* frame) = 0;

  grpc::ByteBuffer incoming_;
  OnFrame on_frame_;
  OnEnd on_end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string why_;  ///< it ended
  bool done_ = false;

private:
  void deliver(const std::vector<grpc::Slice>& slices) {
    std::array<std::byte, kFrameHeaderBytes> header{};
    std::size_t filled = 0;
    std::vector<std::span<const std::byte>> rest;
    for (const grpc::Slice& slice : slices) {
      std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(slice.begin()), slice.size()};
      const std::size_t head = std::min(bytes.size(), kFrameHeaderBytes - filled);
      std::copy_n(bytes.begin(), head, header.begin() + static_cast<std::ptrdiff_t>(filled));
      filled += head;
      if (bytes.size() > head) rest.push_back(bytes.subspan(head));
    }
    if (filled == kFrameHeaderBytes) on_frame_(decode(header), rest);
  }

  std::deque<std::pair<grpc::ByteBuffer, std::size_t>> queue_;
  std::atomic<std::size_t> queued_{0};
  bool ended_ = false;
};

/// Both reactors of gRPC's callback interface have the same shape.
template <class Reactor>
class StreamOf : public Stream, public Reactor {
public:
  void OnReadDone(bool ok) override { read(ok); }
  void OnWriteDone(bool ok) override { written(ok); }

protected:
  void start_write(const grpc::ByteBuffer* frame) override { Reactor::StartWrite(frame); }
  void start_read(grpc::ByteBuffer* frame) override { Reactor::StartRead(frame); }
};

class DialedStream : public StreamOf<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
public:
  DialedStream(grpc::GenericStub& stub, AgentId self, int number, OnFrame on_frame, OnEnd on_end) {
    on_frame_ = std::move(on_frame);
    on_end_ = std::move(on_end);
    context_.AddMetadata(kAgentKey, std::to_string(self));
    context_.AddMetadata(kStreamKey, std::to_string(number));
    stub.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    AddHold();  // one for writes that may start at any time, until cancel()
    start_read(&incoming_);
    StartCall();
  }
  void OnReadInitialMetadataDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    accepted_ = ok;
    changed_.notify_all();
  }
  bool wait_until_accepted(double timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(timeout), [this] { return accepted_ || done_; }) &&
           accepted_;
  }
  void OnDone(const grpc::Status& status) override { end(status.error_message()); }
  /// Why it was not accepted.
  std::string why() {
    const std::lock_guard lock(mutex_);
    return done_ ? why_ : "no answer in time";
  }
  void OnReadDone(bool ok) override {
    read(ok);
    if (!ok) release();
  }
  void cancel() override {
    context_.TryCancel();
    release();
  }

private:
  void release() {
    stop_writing();
    if (!released_.exchange(true)) RemoveHold();
  }

  grpc::ClientContext context_;
  std::atomic<bool> released_{false};
  bool accepted_ = false;
};

class AcceptedStream : public StreamOf<grpc::ServerGenericBidiReactor> {
public:
  AcceptedStream(OnFrame on_frame, OnEnd on_end) {
    on_frame_ = std::move(on_frame);
    on_end_ = std::move(on_end);
    StartSendInitialMetadata();  // tells the other end that it may count on this stream
    start_read(&incoming_);
  }
  void OnReadDone(bool ok) override {
    read(ok);
    if (!ok) finish();
  }
  void OnDone() override { end("the connection was closed"); }  // the object belongs to Links
  void cancel() override { finish(); }

private:
  void finish() {
    stop_writing();
    if (!finished_.exchange(true)) Finish(grpc::Status::OK);
  }

  std::atomic<bool> finished_{false};
};

/// Answers a call that is not let in, and goes.
class RefusedStream : public grpc::ServerGenericBidiReactor {
public:
  explicit RefusedStream(const std::string& why) { Finish({grpc::StatusCode::FAILED_PRECONDITION, why}); }
  void OnDone() override { delete this; }
};

int number_in(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  int out = -1;
  if (found != context.client_metadata().end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), out);
  return out;
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // one connection per channel, never shared
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  return arguments;
}

grpc::ByteBuffer buffer_of(const FrameHeader& header, const grpc::Slice* payload) {
  const auto head = encode(header);
  std::vector<grpc::Slice> slices;
  slices.emplace_back(head.data(), head.size());
  if (payload != nullptr) slices.push_back(*payload);
  return {slices.data(), slices.size()};
}

}  // namespace

std::string text_of(Pieces pieces) {
  std::string out;
  for (const auto& piece : pieces) out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out;
}

class Links::Impl : public grpc::CallbackGenericService {
public:
  Impl(AgentId self, const std::string& address, Handlers handlers) : self_(self), handlers_(std::move(handlers)) {
    keep_grpc_started();
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use is an error
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      throw CapabilityError(fmt::format("cannot listen on {}: the port is in use or the address is not ours", address));
  }
  ~Impl() override { close(); }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const AgentId peer = number_in(*context, kAgentKey);
    const int number = number_in(*context, kStreamKey);
    if (const std::string why = reason_against(peer, number); !why.empty()) return new RefusedStream(why);
    auto stream =
        std::make_unique<AcceptedStream>([this, peer](const FrameHeader& h, Pieces p) { handlers_.frame(peer, h, p); },
                                         [this, peer](const std::string& why) { ended(peer, why); });
    AcceptedStream* raw = stream.get();
    const std::lock_guard lock(mutex_);
    add(peer, number, std::move(stream));
    return raw;
  }

  void connect(AgentId peer, const std::string& address, int data_streams, double timeout) {
    auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), channel_arguments());
    const auto deadline = std::chrono::system_clock::now() + std::chrono::duration<double>(timeout);
    if (!channel->WaitForConnected(std::chrono::time_point_cast<std::chrono::system_clock::duration>(deadline)))
      throw CapabilityError(
          fmt::format("agent {} cannot reach agent {} at {} within {} s", self_, peer, address, timeout));
    auto stub = std::make_unique<grpc::GenericStub>(channel);
    for (int number = 0; number <= data_streams; ++number) {
      auto stream = std::make_unique<DialedStream>(
          *stub, self_, number, [this, peer](const FrameHeader& h, Pieces p) { handlers_.frame(peer, h, p); },
          [this, peer](const std::string& why) { ended(peer, why); });
      DialedStream* raw = stream.get();
      {
        const std::lock_guard lock(mutex_);
        add(peer, number, std::move(stream));
      }
      if (!raw->wait_until_accepted(timeout))
        throw CapabilityError(
            fmt::format("agent {} is not let in by agent {} at {}: {}", self_, peer, address, raw->why()));
    }
    const std::lock_guard lock(mutex_);
    stubs_.push_back(std::move(stub));
  }

  void send(AgentId to, const grpc::ByteBuffer& frame, std::size_t bytes) {
    Stream* stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = peers_.find(to);
      if (found == peers_.end()) return;  // gone: reported already
      stream = found->second.front().get();
    }
    if (stream != nullptr) stream->write(frame, bytes);
  }
  /// The stream that a transfer to `to` goes over.
  Stream* pick(AgentId to) {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(to);
    return found == peers_.end() ? nullptr : data_stream(found->second);
  }

  void close() {
    if (closing_.exchange(true)) return;
    std::vector<std::unique_ptr<Stream>> all;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [peer, streams] : peers_)
        for (auto& stream : streams)
          if (stream != nullptr) all.push_back(std::move(stream));
      peers_.clear();
    }
    for (const auto& stream : all) stream->cancel();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    constexpr double kPatience = 2.0;
    for (auto& stream : all)
      if (!stream->wait_until_done(kPatience)) (void)stream.release();  // gRPC may still call it: never freed
  }
  [[nodiscard]] int port() const { return port_; }

private:
  /// Empty: let it in.
  std::string reason_against(AgentId peer, int number) {
    constexpr int kMostStreams = 4096;
    if (peer < 0 || number < 0 || number > kMostStreams) return "not a process of a run";
    const std::lock_guard lock(mutex_);
    const auto known = peers_.find(peer);
    const auto at = static_cast<std::size_t>(number);
    if (known == peers_.end() || known->second.size() <= at || known->second[at] == nullptr) return {};
    return fmt::format("there is an agent {} already: two processes were started with the same rank", peer);
  }
  void add(AgentId peer, int number, std::unique_ptr<Stream> stream) {
    auto& streams = peers_[peer];
    const auto at = static_cast<std::size_t>(number);
    if (streams.size() <= at) streams.resize(at + 1);
    streams[at] = std::move(stream);
  }
  static Stream* data_stream(const std::vector<std::unique_ptr<Stream>>& streams) {
    Stream* least = streams.front().get();
    for (std::size_t i = 1; i < streams.size(); ++i)
      if (streams[i] != nullptr && (i == 1 || streams[i]->queued() < least->queued())) least = streams[i].get();
    return least;
  }
  void ended(AgentId peer, const std::string& why) {
    if (!closing_) handlers_.lost(peer, why);
  }

  AgentId self_;
  Handlers handlers_;
  int port_ = 0;
  std::atomic<bool> closing_{false};
  std::mutex mutex_;
  std::map<AgentId, std::vector<std::unique_ptr<Stream>>> peers_;  ///< control stream first
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::unique_ptr<grpc::Server> server_;
};

Links::Links(AgentId self, const std::string& address, Handlers handlers)
    : impl_(std::make_unique<Impl>(self, address, std::move(handlers))) {}
Links::~Links() = default;

int Links::port() const {
  return impl_->port();
}

void Links::connect(AgentId peer, const std::string& address, int data_streams, double timeout) {
  impl_->connect(peer, address, data_streams, timeout);
}

void Links::send(AgentId to, const FrameHeader& header, const std::string& text) {
  const grpc::Slice slice(text);
  impl_->send(to, buffer_of(header, text.empty() ? nullptr : &slice), text.size());
}

void Links::send_data(AgentId to, const FrameHeader& header, std::span<const std::byte> payload, int messages) {
  const auto count = static_cast<std::size_t>(std::max(1, messages));
  const std::size_t message = std::max<std::size_t>(1, (payload.size() + count - 1) / count);
  FrameHeader piece = header;
  piece.kind = FrameKind::Data;
  piece.total = payload.size();
  Stream* stream = impl_->pick(to);
  if (stream == nullptr) return;
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min({kPieceBytes, message, payload.size() - offset});
    piece.offset = offset;
    // gRPC reads the caller's memory: nothing is copied before the kernel takes it.
    const grpc::Slice slice(payload.data() + offset, bytes, grpc::Slice::STATIC_SLICE);
    stream->write(buffer_of(piece, &slice), bytes);
    offset += bytes;
  } while (offset < payload.size());
}

void Links::close() {
  impl_->close();
}

}  // namespace simsync
