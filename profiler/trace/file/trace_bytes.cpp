#include "profiler/trace/file/trace_bytes.h"

#include <cstring>
#include <type_traits>

namespace profiler {
namespace {

void put(std::string& bytes, const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
}

void put_count(std::string& bytes, std::size_t count) {
    const uint64_t value = count;
    put(bytes, &value, sizeof value);
}

/// Takes bytes from the front. `ok` becomes false when there are too few.
struct Reader {
    std::string_view bytes;
    bool ok = true;

    std::string_view take(std::size_t size) {
        if (size > bytes.size()) ok = false;
        if (!ok) return {};
        const std::string_view front = bytes.substr(0, size);
        bytes.remove_prefix(size);
        return front;
    }
    std::size_t take_count() {
        uint64_t value = 0;
        const std::string_view front = take(sizeof value);
        if (ok) std::memcpy(&value, front.data(), sizeof value);
        return static_cast<std::size_t>(value);
    }
};

/// Values are sent as they lie in memory, since both programs come from one build.
template <typename Value>
void check_type() {
    static_assert(std::is_trivially_copyable_v<Value>);
}

template <typename Values>
void take_column(Reader& reader, std::size_t num_rows, Values& values) {
    using Value = typename Values::value_type;
    check_type<Value>();
    if (num_rows > reader.bytes.size() / sizeof(Value)) reader.ok = false;  // no overflow below
    if (!reader.ok) return;
    const std::string_view front = reader.take(num_rows * sizeof(Value));
    values.resize(num_rows);
    if (num_rows > 0) std::memcpy(values.data(), front.data(), front.size());
}

}  // namespace

std::string to_bytes(const Trace& trace) {
    std::string bytes;
    put_count(bytes, trace.strings.size());
    for (std::size_t i = 0; i < trace.strings.size(); ++i) {
        const std::string_view text = trace.strings[StringId(i)];
        put_count(bytes, text.size());
        bytes += text;
    }
    Trace::for_each_table(trace, [&](std::string_view, const auto& table) {
        put_count(bytes, table.size());
        table.for_each_column([&](const auto&, const auto& values) {
            using Value = typename std::remove_cvref_t<decltype(values)>::value_type;
            check_type<Value>();
            put(bytes, values.data(), values.size() * sizeof(Value));
        });
    });
    return bytes;
}

models::Result<Trace> trace_from_bytes(std::string_view bytes) {
    Trace trace;
    Reader reader{.bytes = bytes};
    const std::size_t num_texts = reader.take_count();
    for (std::size_t i = 0; reader.ok && i < num_texts; ++i) {
        // A repeated text gets the earlier id, which would shift every later id.
        if (trace.strings.intern(reader.take(reader.take_count())) != StringId(i))
            reader.ok = false;
    }
    Trace::for_each_table(trace, [&](std::string_view, auto& table) {
        const std::size_t num_rows = reader.take_count();
        table.for_each_column(
            [&](const auto&, auto& values) { take_column(reader, num_rows, values); });
    });
    if (!reader.ok || !reader.bytes.empty()) {
        return models::fail(
            "The trace that the worker sent is damaged: build both programs again.");
    }
    return trace;
}

}  // namespace profiler
