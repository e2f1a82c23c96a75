#include "profiler/protocol/frame.h"

#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace profiler {
namespace {

constexpr std::size_t kLengthBytes = 8;

void append_u32(std::string& bytes, std::size_t value) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
}

uint32_t read_u32(std::string_view bytes) {
    uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
}

}  // namespace

std::string encode_frame(const nlohmann::json& header, std::string_view payload) {
    const std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > kMaxHeaderBytes || payload.size() > kMaxPayloadBytes) {
        throw std::length_error("a frame of the worker protocol is too long");
    }
    std::string bytes;
    bytes.reserve(kLengthBytes + text.size() + payload.size());
    append_u32(bytes, text.size());
    append_u32(bytes, payload.size());
    return bytes.append(text).append(payload);
}

models::Result<std::optional<WireFrame>> FrameDecoder::next() {
    if (buffer_.size() < kLengthBytes) return std::nullopt;
    const uint32_t header_bytes = read_u32(buffer_);
    const uint32_t payload_bytes = read_u32(std::string_view(buffer_).substr(4));
    if (header_bytes > kMaxHeaderBytes || payload_bytes > kMaxPayloadBytes) {
        return models::fail("A frame announces {} and {} bytes: the worker is of another build.",
                            header_bytes, payload_bytes);
    }
    const std::size_t total = kLengthBytes + header_bytes + payload_bytes;
    if (buffer_.size() < total) return std::nullopt;
    WireFrame frame;
    frame.header = nlohmann::json::parse(buffer_.begin() + kLengthBytes,
                                         buffer_.begin() + kLengthBytes + header_bytes, nullptr,
                                         /*allow_exceptions=*/false);
    if (!frame.header.is_object()) {
        return models::fail("A frame has no readable header: the worker is of another build.");
    }
    frame.payload = buffer_.substr(kLengthBytes + header_bytes, payload_bytes);
    buffer_.erase(0, total);
    return frame;
}

void FrameSocket::close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

bool FrameSocket::send(const nlohmann::json& header, std::string_view payload) {
    const std::string bytes = encode_frame(header, payload);
    const std::lock_guard lock(send_mutex_);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t count =
            ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        sent += static_cast<std::size_t>(count);
    }
    return true;
}

FrameSocket::Received FrameSocket::receive(FrameDecoder& decoder, bool wait) {
    std::array<char, 65536> bytes;
    for (;;) {
        const ssize_t count =
            recv(descriptor_, bytes.data(), bytes.size(), wait ? 0 : MSG_DONTWAIT);
        if (count > 0) {
            decoder.feed({bytes.data(), static_cast<std::size_t>(count)});
            return Received::kBytes;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
        return Received::kEnd;
    }
}

}  // namespace profiler
