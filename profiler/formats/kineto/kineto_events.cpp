#include "profiler/formats/kineto/kineto_events.h"

#include "profiler/formats/kineto/kineto_event.h"
#include "profiler/trace/available_memory.h"
#include "profiler/trace/collective_rows.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/trace/value_range.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace profiler::kineto {
namespace {

/// The JSON of a trace in windows that end between two events, so that a file of any size is read
/// in the memory of one window:
///
///     { "schemaVersion": 1, "traceEvents": [ {..}, {..}, {..}, {..} ], "traceName": ".." }
///       └──── value ─────┘                   └── window ─┘└─ window ┘  └──── value ─────┘
///
/// Source: "Trace Event Format", the Chrome project: an object with traceEvents or a bare array,
/// which may lack its closing bracket.
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
    models::Result<void> read() try {
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

    /// Bytes of the unpacked file so far.
    uint64_t offset() const { return base_ + at_; }
    /// Whether a bare array of events ended without its bracket.
    bool ended_early() const { return ended_early_; }

private:
    struct Problem {
        models::Error error;
    };

    /// How far the scan of one value has come. It continues after more bytes were read.
    struct Scan {
        std::size_t depth = 0;
        bool in_text = false;
        bool escaped = false;

        /// The place after the value's last character, or null if the value goes on beyond `end`.
        /// Control characters in texts become spaces: JSON forbids them; some writers forget it.
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

    [[noreturn]] void stop(std::string_view what) const {
        throw Problem{{fmt::format("byte {}: {}", offset(), what)}};
    }

    /// Moves what is not handed over to the front and reads more behind it. False at the end.
    bool refill() {
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

    /// The next character that is no white space; 0 at the end.
    char peek() {
        while (true) {
            while (at_ < end_) {
                const char c = buffer_[at_];
                if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
                ++at_;
            }
            if (!refill()) return 0;
        }
    }

    void expect(char wanted) {
        const char found = peek();
        if (found == 0) stop("the file is truncated");
        if (found != wanted) stop(fmt::format("'{}' is expected here", wanted));
        ++at_;
    }

    std::string read_key() {
        if (peek() != '"') stop(at_ == end_ ? "the file is truncated" : "a key is expected here");
        std::string key;
        skip_value(&key);
        if (key.size() < 2) stop("a key is too long");
        return key.substr(1, key.size() - 2);
    }

    /// Leaves `text` empty when the value is long.
    void skip_value(std::string* text) {
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

    void read_object() {
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
    void read_events() {
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

    void hand_over(std::size_t first, std::size_t end) {
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

    ByteStream& bytes_;
    const JsonSink& sink_;
    std::vector<char> buffer_;
    std::size_t at_ = 1;   // [0] is kept free for the bracket of a window
    std::size_t end_ = 1;  // of what was read
    uint64_t base_ = 0;    // offset in the file of buffer_[0]; wraps at the start
    bool at_end_ = false;
    bool ended_early_ = false;
};

using models::Result;

enum class Kind : uint8_t { kSkipped, kUnknown, kOp, kAnnotation, kPython, kApi, kWork };

struct Meaning {
    Kind kind = Kind::kUnknown;
    WorkKind work = WorkKind::kKernel;
};

/// What the categories of 2021 to 2026 mean, in lower case.
Meaning meaning_of(std::string_view category) {
    struct Row {
        std::string_view category;
        Meaning meaning;
    };
    static constexpr Row kRows[]{
        {"cpu_op", {Kind::kOp}},
        {"operator", {Kind::kOp}},
        {"user_annotation", {Kind::kAnnotation}},
        {"python_function", {Kind::kPython}},
        {"cuda_runtime", {Kind::kApi}},
        {"cuda_driver", {Kind::kApi}},
        {"hip_runtime", {Kind::kApi}},
        {"hip_driver", {Kind::kApi}},
        {"xpu_runtime", {Kind::kApi}},
        {"runtime", {Kind::kApi}},
        {"kernel", {Kind::kWork, WorkKind::kKernel}},
        {"gpu_memcpy", {Kind::kWork, WorkKind::kMemcpy}},
        {"memcpy", {Kind::kWork, WorkKind::kMemcpy}},
        {"gpu_memset", {Kind::kWork, WorkKind::kMemset}},
        {"memset", {Kind::kWork, WorkKind::kMemset}},
        {"gpu_user_annotation", {Kind::kSkipped}},
        {"overhead", {Kind::kSkipped}},
        {"cuda_sync", {Kind::kSkipped}},
        {"trace", {Kind::kSkipped}},
    };
    for (const Row& row : kRows) {
        if (row.category.size() != category.size()) continue;
        const auto same = [](char a, char b) { return a == to_lower(b); };
        if (std::equal(row.category.begin(), row.category.end(), category.begin(), same)) {
            return row.meaning;
        }
    }
    return {};
}

/// The number that a text ends with: 7 of "stream 7 ", 1 of "1".
int64_t number_at_end(std::string_view text) {
    while (!text.empty() && (text.back() < '0' || text.back() > '9')) text.remove_suffix(1);
    std::size_t first = text.size();
    while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
    int64_t number = 0;
    std::from_chars(text.data() + first, text.data() + text.size(), number);
    return number;
}

/// Sorts events into KinetoEvents.
class EventSink {
public:
    EventSink(KinetoEvents& events, StringTable& strings) : events_(events), strings_(strings) {}

    void add(const Event& event) {
        switch (event.phase) {
            case 'X':
                return add_complete(event);
            case 'i':
            case 'I':
            case 'n':
                return add_instant(event);
            case 's':
            case 'f':
                return add_flow(event);
            case 'M':
                return add_metadata(event);
            case 'B':  // and 'E': ranges in two parts, which the profiler does not write
                ++events_.unknown_events;
                return;
            default:
                return;
        }
    }
    /// A side value of the file.
    void add_value(std::string_view key, std::string_view json) {
        if (std::ranges::find(kValueKeys, key) != kValueKeys.end())
            events_.values.emplace(key, json);
    }

    /// Of the events and their texts, about. A packed file can hold far more than its size.
    std::size_t memory_bytes() const {
        const auto size_of = [](const auto& rows) { return rows.size() * sizeof(rows[0]); };
        return size_of(events_.spans) + size_of(events_.collectives) + size_of(events_.work) +
               size_of(events_.memory) + size_of(events_.stack_frames) +
               size_of(events_.backward_flows) + size_of(events_.launch_flows) +
               size_of(events_.threads) + text_bytes_;
    }

private:
    void add_complete(const Event& event) {
        if (!event.has_time) return;
        const Meaning meaning = meaning_of(event.category);
        switch (meaning.kind) {
            case Kind::kOp:
                return add_span(event, op_kind(event.name));
            case Kind::kAnnotation:
                return add_span(event, SpanKind::kAnnotation);
            case Kind::kPython:
                return add_span(event, SpanKind::kPython);
            case Kind::kApi:
                return add_span(event, SpanKind::kApi);
            case Kind::kWork:
                return add_work(event, meaning.work);
            case Kind::kUnknown:
                ++events_.unknown_events;
                return;
            case Kind::kSkipped:
                return;
        }
    }

    /// Before 2022 ranges of the user were ops.
    static SpanKind op_kind(std::string_view name) {
        const bool is_range = name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.");
        return is_range ? SpanKind::kAnnotation : SpanKind::kOp;
    }

    void add_span(const Event& event, SpanKind kind) {
        HostSpan span{.name = intern(event.name),
                      .thread = thread_of(event),
                      .kind = kind,
                      .start_ns = event.time_ns,
                      .end_ns = end_of(event),
                      .external_id = event.external_id,
                      .correlation = event.correlation,
                      .sequence = event.sequence,
                      .is_backward = event.forward_thread != 0};
        if (!event.call_stack.empty()) span.call_stack = intern(event.call_stack);
        if (kind == SpanKind::kOp && !event.collective.name.empty()) {
            add_collective(event.collective);
        }
        events_.spans.push_back(span);
    }

    /// Of the next span.
    void add_collective(const CollectiveArguments& arguments) {
        const auto kind = collective_kind_of(arguments.name);
        if (!kind) return;
        constexpr int64_t kMostElements = int64_t{1} << 40;
        const DType dtype = dtype_of_scalar_type(arguments.dtype);
        const auto bytes_of = [&](int64_t elements) {
            return std::clamp<int64_t>(elements, 0, kMostElements) *
                   element_bytes_of_scalar_type(arguments.dtype);
        };
        CollectiveEvent row{.span = events_.spans.size()};
        row.collective = {.kind = *kind, .dtype = dtype, .peer = arguments.peer};
        if (*kind != CollectiveKind::kRecv) {
            row.collective.in_bytes = bytes_of(arguments.in_elements);
        }
        if (*kind != CollectiveKind::kSend) {
            row.collective.out_bytes = bytes_of(arguments.out_elements);
        }
        sum_of_messages_ += static_cast<double>(row.collective.in_bytes) +
                            static_cast<double>(row.collective.out_bytes);
        if (sum_of_messages_ > kMaxColumnSum / 4) {
            ++events_.unknown_events;
            return;
        }
        row.communicator = {.name = intern(arguments.group), .num_ranks = arguments.num_ranks};
        if (!arguments.description.empty()) {
            row.communicator.description = intern(arguments.description);
        }
        if (!arguments.ranks.empty()) row.communicator.ranks = intern(arguments.ranks);
        events_.collectives.push_back(row);
    }

    void add_work(const Event& event, WorkKind kind) {
        events_.work.push_back(
            {.name = intern(event.name),
             .kind = kind,
             .device = event.device >= 0 ? event.device : number_at_end(event.process),
             .stream = event.stream >= 0 ? event.stream : number_at_end(event.thread),
             .start_ns = event.time_ns,
             .end_ns = end_of(event),
             .correlation = event.correlation,
             .external_id = event.external_id,
             .grid = event.grid,
             .block = event.block,
             .registers_per_thread = event.registers_per_thread,
             .shared_memory_bytes = event.shared_memory_bytes,
             .size_bytes = std::max<int64_t>(event.copied_bytes, 0)});
    }

    void add_instant(const Event& event) {
        const bool is_out_of_memory = event.name == "[OutOfMemory]";
        if (!event.has_time || (!is_out_of_memory && event.name != "[memory]")) return;
        constexpr int64_t kMostBytes = int64_t{1} << 50;
        if (!event.has_changed_bytes || event.changed_bytes > kMostBytes ||
            event.changed_bytes < -kMostBytes ||
            (sum_of_sizes_ += std::abs(static_cast<double>(event.changed_bytes))) >
                kMaxColumnSum / 4) {
            ++events_.unknown_events;
            return;
        }
        const auto within = [](int64_t bytes) { return bytes > kMostBytes ? -1 : bytes; };
        events_.memory.push_back({.time_ns = event.time_ns,
                                  .thread = thread_of(event),
                                  .is_out_of_memory = is_out_of_memory,
                                  .is_host = event.memory_device_type == 0,
                                  .device = std::max<int64_t>(event.memory_device, 0),
                                  .address = event.address,
                                  .size_bytes = event.changed_bytes,
                                  .allocated_bytes = within(event.allocated_bytes),
                                  .reserved_bytes = within(event.reserved_bytes),
                                  .call_stack = stack_of(event)});
    }

    void add_flow(const Event& event) {
        if (!event.has_time || event.id < 0) return;
        const bool is_backward =
            event.category == "fwdbwd" || event.category.starts_with("forward_backward");
        auto& flows = is_backward ? events_.backward_flows : events_.launch_flows;
        flows.push_back({event.id, thread_of(event), event.time_ns, event.phase == 's'});
    }

    void add_metadata(const Event& event) {
        if (event.name == kStackFrameName) {
            events_.stack_frames.push_back({.id = event.stack_id,
                                            .parent = event.parent_stack_id,
                                            .name = intern(event.metadata_name)});
        }
        if (event.name != "thread_name" || event.metadata_name.empty()) return;
        const int32_t thread = thread_of(event);
        events_.threads[static_cast<std::size_t>(thread)].name = valid(event.metadata_name);
    }

    StackOfEvent stack_of(const Event& event) {
        StackOfEvent stack{.id = event.stack_id};
        if (!event.call_stack.empty()) stack.text = intern(event.call_stack);
        return stack;
    }

    StringId intern(std::string_view text) {
        constexpr std::size_t kNodeBytes = 128;
        const std::size_t known = strings_.size();
        const StringId id = strings_.intern(valid(text));
        if (strings_.size() != known) text_bytes_ += 2 * text.size() + kNodeBytes;
        return id;
    }

    static int64_t end_of(const Event& event) {
        return event.time_ns + std::clamp<int64_t>(event.duration_ns, 0, int64_t{1} << 52);
    }

    /// simdjson checked the file; a text whose escapes are wrong comes as it stands.
    static std::string_view valid(std::string_view text) { return is_utf8(text) ? text : "?"; }

    int32_t thread_of(const Event& event) {
        if (last_ >= 0) {
            const ThreadName& last = events_.threads[static_cast<std::size_t>(last_)];
            if (last.thread == event.thread && last.process == event.process) return last_;
        }
        key_.assign(event.process).append(1, '\n').append(event.thread);
        const auto next = static_cast<int32_t>(events_.threads.size());
        const auto [known, is_new] = threads_.try_emplace(key_, next);
        if (is_new) {
            events_.threads.push_back({std::string(event.process), std::string(event.thread), {}});
            text_bytes_ += 3 * key_.size();
        }
        return last_ = known->second;
    }

    KinetoEvents& events_;
    StringTable& strings_;
    std::unordered_map<std::string, int32_t> threads_;
    std::string key_;
    int32_t last_ = -1;
    std::size_t text_bytes_ = 0;
    double sum_of_sizes_ = 0;  // analyses add them up in 64 bits
    double sum_of_messages_ = 0;
};

/// Replaces what is not UTF-8, which some writers let through.
void make_utf8(char* text, std::size_t size) {
    for (std::size_t i = 0; i < size;) {
        const std::size_t bytes = character_bytes({text + i, size - i});
        if (bytes == 0) text[i] = '?';
        i += std::max<std::size_t>(bytes, 1);
    }
}

class WindowReader {
public:
    explicit WindowReader(EventSink& sink) : sink_(sink) {}

    Result<void> read(char* json, std::size_t size, std::size_t capacity, uint64_t offset) {
        simdjson::ondemand::document document;
        // A document that has not begun has no place, and must not be asked for it.
        if (const auto error = begin(json, size, capacity, document)) return refuse(error, offset);
        const auto error = read_array(document);
        if (!error) return {};
        const char* place = nullptr;
        if (document.current_location().get(place) == simdjson::SUCCESS && place >= json) {
            offset += static_cast<uint64_t>(place - json);
        }
        return refuse(error, offset);
    }

private:
    simdjson::error_code begin(char* json, std::size_t size, std::size_t capacity,
                               simdjson::ondemand::document& document) {
        auto error = parser_.iterate(json, size, capacity).get(document);
        if (error == simdjson::UTF8_ERROR) {
            make_utf8(json, size);
            error = parser_.iterate(json, size, capacity).get(document);
        }
        return error;
    }

    static Result<void> refuse(simdjson::error_code error, uint64_t offset) {
        if (error == simdjson::MEMALLOC) throw std::bad_alloc();
        return models::fail("byte {}: it is not JSON", offset);
    }

    simdjson::error_code read_array(simdjson::ondemand::document& document) {
        simdjson::ondemand::array array;
        if (const auto error = document.get_array().get(array)) return error;
        for (auto element : array) {
            simdjson::ondemand::object object;
            if (const auto error = element.get_object().get(object)) return error;
            if (const auto error = read_event(object, event_)) return error;
            sink_.add(event_);
        }
        return simdjson::SUCCESS;
    }

    EventSink& sink_;
    simdjson::ondemand::parser parser_;
    Event event_;
};

}  // namespace

std::size_t most_event_bytes() {
    constexpr std::size_t kMostBytes = std::size_t{5} << 30;  // rows of the trace come on top
    const int64_t available_bytes = available_memory_bytes();
    if (available_bytes < 0) return kMostBytes;
    return std::min(kMostBytes, static_cast<std::size_t>(available_bytes) / 2);
}

Result<KinetoEvents> read_events(const std::filesystem::path& path, const ReadOptions& options,
                                 StringTable& strings, std::size_t most_bytes) {
    auto bytes = ByteStream::open(path);
    if (!bytes) return tl::unexpected(bytes.error());
    KinetoEvents events;
    EventSink sink(events, strings);
    WindowReader reader(sink);
    bool cancelled = false, is_full = false;
    const JsonSink json{
        .value = [&](std::string_view key, std::string_view text) { sink.add_value(key, text); },
        .window = [&](char* text, std::size_t size, std::size_t capacity,
                      uint64_t offset) -> Result<void> {
            cancelled = options.progress && !options.progress(0.8 * bytes->share_read());
            is_full = sink.memory_bytes() > most_bytes;
            if (cancelled || is_full) return models::fail("");
            return reader.read(text, size, capacity, offset);
        }};
    JsonWindows windows(*bytes, json);
    const auto read = windows.read();
    if (cancelled) return models::fail("Reading {} was cancelled.", path.string());
    if (is_full) {
        return models::fail(
            "{} holds events of more than {}, which is more than this machine has room for; record "
            "fewer steps (the schedule of torch.profiler.profile).",
            path.string(), format_bytes(static_cast<int64_t>(most_bytes)));
    }
    if (!read) {
        const std::string& problem = read.error().message;
        if (!problem.starts_with("byte ")) return tl::unexpected(read.error());
        return models::fail(
            "{} cannot be read as a trace of the PyTorch profiler: {}; copy it again, or export "
            "it again with export_chrome_trace.",
            path.string(), problem);
    }
    events.ended_early = windows.ended_early();
    return events;
}

}  // namespace profiler::kineto
