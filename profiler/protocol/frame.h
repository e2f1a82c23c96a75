#pragma once

#include "models/config/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

/// Frames on a socket: lengths, a JSON header, and a binary payload that may be empty.
///
///     bytes   0..3         4..7          8 ...           8 + header_bytes ...
///             header_bytes payload_bytes header (JSON)   payload
///
/// Lengths are little-endian. A length over its limit, a header that is no JSON object or a stream
/// that ends inside a frame is an error: the other side is of another build, or broken.
namespace profiler {

inline constexpr uint32_t kMaxHeaderBytes = 16u << 20;
inline constexpr uint32_t kMaxPayloadBytes = 1u << 30;

struct WireFrame {
    nlohmann::json header;
    std::string payload;  // columns in schema order
};

/// Bytes that are no UTF-8 become U+FFFD: a message of the system must not stop its report.
std::string encode_frame(const nlohmann::json& header, std::string_view payload = {});

/// Cuts a stream of bytes into frames.
class FrameDecoder {
public:
    void feed(std::string_view bytes) { buffer_ += bytes; }
    /// The next whole frame, if there is one. After an error the stream is lost.
    models::Result<std::optional<WireFrame>> next();
    bool empty() const { return buffer_.empty(); }

private:
    std::string buffer_;
};

/// Owns one end of the socket pair.
class FrameSocket {
public:
    explicit FrameSocket(int descriptor) : descriptor_(descriptor) {}
    FrameSocket(const FrameSocket&) = delete;
    FrameSocket& operator=(const FrameSocket&) = delete;
    ~FrameSocket() { close(); }

    int descriptor() const { return descriptor_; }
    void close();

    /// Any thread; frames do not mix. False when the other side is gone.
    bool send(const nlohmann::json& header, std::string_view payload = {});

    enum class Received : uint8_t { kBytes, kNothing, kEnd };
    /// Moves what has arrived to `decoder`; waits for it unless `wait` is false.
    Received receive(FrameDecoder& decoder, bool wait);

private:
    int descriptor_;
    std::mutex send_mutex_;
};

}  // namespace profiler
