#pragma once

#include "models/config/result.h"
#include "profiler/formats/parts/byte_stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The JSON of a trace in windows that end between two events, so that a file of any size is read
/// in the memory of one window:
///
///     { "schemaVersion": 1, "traceEvents": [ {..}, {..}, {..}, {..} ], "traceName": ".." }
///       └──── value ─────┘                   └── window ─┘└─ window ┘  └──── value ─────┘
///
/// Source: "Trace Event Format", the Chrome project: an object with traceEvents or a bare array,
/// which may lack its closing bracket.
namespace profiler {

struct JsonSink {
    /// A value beside the events, as JSON text of at most kMostValueBytes; longer ones are left
    /// out.
    std::function<void(std::string_view key, std::string_view json)> value;
    /// A window as a JSON array of objects. `capacity` bytes of memory follow its beginning.
    /// `offset` is where it lies in the unpacked file. Returning an error stops.
    std::function<models::Result<void>(char* json, std::size_t size, std::size_t capacity,
                                       uint64_t offset)>
        window;
};

class JsonWindows {
public:
    static constexpr std::size_t kWindowBytes = std::size_t{4} << 20;
    static constexpr std::size_t kMostEventBytes = std::size_t{64} << 20;
    static constexpr std::size_t kMostValueBytes = std::size_t{1} << 20;
    static constexpr std::size_t kPaddingBytes = 64;  // what a SIMD parser may read beyond the end

    JsonWindows(ByteStream& bytes, const JsonSink& sink) : bytes_(bytes), sink_(sink) {}

    /// Errors: "byte 17: ..." without the file's name; those of ByteStream with it.
    models::Result<void> read();

    /// Bytes of the unpacked file so far.
    uint64_t offset() const { return base_ + at_; }
    /// Whether a bare array of events ended without its bracket.
    bool ended_early() const { return ended_early_; }

private:
    struct Problem {
        models::Error error;
    };
    struct Scan;

    [[noreturn]] void stop(std::string_view what) const;
    bool refill();
    char peek();  // the next character that is no white space; 0 at the end
    void expect(char wanted);
    std::string read_key();
    void skip_value(std::string* text);
    void read_object();
    void read_events();
    void hand_over(std::size_t first, std::size_t end);

    ByteStream& bytes_;
    const JsonSink& sink_;
    std::vector<char> buffer_;
    std::size_t at_ = 1;   // [0] is kept free for the bracket of a window
    std::size_t end_ = 1;  // of what was read
    uint64_t base_ = 0;    // offset in the file of buffer_[0]; wraps at the start
    bool at_end_ = false;
    bool ended_early_ = false;
};

}  // namespace profiler
