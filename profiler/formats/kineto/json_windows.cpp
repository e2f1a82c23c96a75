#include "profiler/formats/kineto/json_windows.h"

#include "profiler/trace/text.h"

#include <algorithm>
#include <cstring>

namespace profiler {

/// How far the scan of one value has come. It continues after more bytes were read.
struct JsonWindows::Scan {
    std::size_t depth = 0;
    bool in_text = false;
    bool escaped = false;

    /// The place after the value's last character, or null if the value goes on beyond `end`.
    /// Control characters in texts become spaces: JSON forbids them, and some writers forget it.
    char* run(char* at, char* end) {
        while (at != end) {
            const char c = *at++;
            if (in_text) {
                if (escaped) {
                    escaped = false;
                } else if (c == '\\') {
                    escaped = true;
                } else if (c == '"') {
                    in_text = false;
                    if (depth == 0) return at;
                } else if (static_cast<unsigned char>(c) < 0x20) {
                    at[-1] = ' ';
                }
            } else if (c == '"') {
                in_text = true;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
                return at;
            } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
                return at - 1;  // after a number or a word
            }
        }
        return nullptr;
    }
};

void JsonWindows::stop(std::string_view what) const {
    throw Problem{{fmt::format("byte {}: {}", offset(), what)}};
}

/// Moves what is not handed over to the front and reads more behind it. False at the end.
bool JsonWindows::refill() {
    if (at_end_) return false;
    if (at_ > 1) {
        std::memmove(buffer_.data() + 1, buffer_.data() + at_, end_ - at_);
        base_ += at_ - 1;
        end_ -= at_ - 1;
        at_ = 1;
    }
    // Behind the last event comes a bracket, and behind that what simdjson may read.
    const std::size_t wanted = end_ + kWindowBytes + 1 + kPaddingBytes;
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const auto got = bytes_.read(buffer_.data() + end_, kWindowBytes);
    if (!got) throw Problem{got.error()};
    at_end_ = *got < kWindowBytes;
    end_ += *got;
    return *got > 0;
}

char JsonWindows::peek() {
    while (true) {
        while (at_ < end_) {
            const char c = buffer_[at_];
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
            ++at_;
        }
        if (!refill()) return 0;
    }
}

void JsonWindows::expect(char wanted) {
    const char found = peek();
    if (found == 0) stop("the file is truncated");
    if (found != wanted) stop(fmt::format("'{}' is expected here", wanted));
    ++at_;
}

std::string JsonWindows::read_key() {
    if (peek() != '"') stop(at_ == end_ ? "the file is truncated" : "a key is expected here");
    std::string key;
    skip_value(&key);
    if (key.size() < 2) stop("a key is too long");
    return key.substr(1, key.size() - 2);
}

/// Leaves `text` empty when the value is long.
void JsonWindows::skip_value(std::string* text) {
    if (peek() == 0) stop("the file is truncated");
    Scan scan;
    bool is_long = false;
    while (true) {
        char* const first = buffer_.data() + at_;
        char* const end = scan.run(first, buffer_.data() + end_);
        const auto size = static_cast<std::size_t>((end ? end : buffer_.data() + end_) - first);
        is_long = is_long || text == nullptr || text->size() + size > kMostValueBytes;
        if (is_long && text != nullptr) text->clear();
        if (!is_long) text->append(first, size);
        at_ += size;
        if (end != nullptr) return;
        if (!refill()) stop("the file is truncated");
    }
}

void JsonWindows::read_object() {
    expect('{');
    bool has_events = false;
    while (peek() != '}') {
        const std::string key = read_key();
        expect(':');
        if (key == "traceEvents" && peek() == '[') {
            has_events = true;
            read_events();
        } else {
            std::string text;
            skip_value(&text);
            if (!text.empty() && sink_.value) sink_.value(key, text);
        }
        if (peek() == ',') ++at_;
    }
    ++at_;
    if (!has_events) stop("it has no list 'traceEvents': not a trace of events");
}

/// Events up to the closing bracket, as many at a time as the buffer holds.
void JsonWindows::read_events() {
    expect('[');
    while (true) {
        while (peek() == ',') ++at_;
        const char next = peek();
        if (next == ']') break;
        if (next == 0) {
            ended_early_ = true;
            return;
        }
        if (next != '{') stop("an event is expected here");
        const std::size_t first = at_;
        std::size_t last = at_;  // after the last complete event
        std::size_t scanned = at_;
        Scan scan;
        while (scanned < end_) {
            const char c = buffer_[scanned];
            const bool is_between = c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
            if (is_between && ++scanned > 0) continue;
            if (c != '{') break;
            char* const end = scan.run(buffer_.data() + scanned, buffer_.data() + end_);
            if (end == nullptr) break;
            last = scanned = static_cast<std::size_t>(end - buffer_.data());
        }
        if (last > first) {
            hand_over(first, last);
            at_ = last;
        } else if (end_ - first > kMostEventBytes) {
            stop("an event has more than 64 MiB");
        } else if (!refill()) {
            stop("the file is truncated");
        }
    }
    ++at_;
}

void JsonWindows::hand_over(std::size_t first, std::size_t end) {
    char* const json = buffer_.data() + first - 1;
    const char before = json[0];
    const char after = buffer_[end];
    json[0] = '[';
    buffer_[end] = ']';
    const std::size_t size = end - first + 2;
    const auto done = sink_.window(json, size, buffer_.size() - first + 1, base_ + first);
    json[0] = before;
    buffer_[end] = after;
    if (!done) throw Problem{done.error()};
}

models::Result<void> JsonWindows::read() try {
    base_ = static_cast<uint64_t>(-1);
    buffer_.resize(1 + kPaddingBytes);
    peek();
    const std::string_view text(buffer_.data() + at_, end_ - at_);
    at_ += text.size() - without_byte_order_mark(text).size();
    const char first = peek();
    if (first == 0) stop("the file is empty");
    if (first == '[') {
        read_events();
        return {};
    }
    read_object();
    if (ended_early_) stop("the file is truncated");
    return {};
} catch (Problem& problem) {
    return tl::unexpected(std::move(problem.error));
}

}  // namespace profiler
