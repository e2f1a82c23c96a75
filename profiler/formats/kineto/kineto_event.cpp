#include "profiler/formats/kineto/kineto_event.h"

#include <charconv>
#include <cmath>

// Source of the fields: libkineto/src/output_json.cpp of pytorch/kineto, and files from 2021 on.
namespace profiler::kineto {
namespace {

using simdjson::error_code;
namespace ondemand = simdjson::ondemand;

constexpr double kMostNanoseconds = 0x1p62;

/// The text of a scalar as it stands in the file, without quotes and white space.
std::string_view token_of(ondemand::value& value) {
    std::string_view token = value.raw_json_token();
    while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') {
        token.remove_suffix(1);
    }
    if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
        token = token.substr(1, token.size() - 2);
    }
    return token;
}

/// An integer, also one written as 5.0 or in quotes or, for ids, as "0x1f".
bool parse_integer(std::string_view token, int64_t& number) {
    const bool is_hexadecimal = token.starts_with("0x");
    if (is_hexadecimal) token.remove_prefix(2);
    int64_t read = 0;
    const char* const end = token.data() + token.size();
    const auto [rest, error] = std::from_chars(token.data(), end, read, is_hexadecimal ? 16 : 10);
    if (error == std::errc() && rest == end) {
        number = read;
        return true;
    }
    double real = 0;
    const auto [rest_of_real, error_of_real] = std::from_chars(token.data(), end, real);
    if (error_of_real != std::errc() || rest_of_real != end || !(std::abs(real) < 0x1p62)) {
        return false;
    }
    number = static_cast<int64_t>(real);
    return true;
}

void set_integer(ondemand::value& value, int64_t& number) {
    parse_integer(token_of(value), number);
}

void set_dimensions(ondemand::value& value, std::array<int64_t, 3>& dimensions) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return;
    std::size_t i = 0;
    for (auto element : array) {
        ondemand::value number;
        if (element.get(number) != simdjson::SUCCESS) return;
        if (i < dimensions.size()) set_integer(number, dimensions[i++]);
    }
}

std::string_view text_of(ondemand::value& value) {
    std::string_view text;
    ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return {};
    if (type != ondemand::json_type::string) return token_of(value);
    return value.get_string().get(text) == simdjson::SUCCESS ? text : token_of(value);
}

struct Argument {
    std::string_view key;
    void (*read)(ondemand::value&, Event&);
};

template <int64_t Event::*Member>
void read_integer(ondemand::value& value, Event& event) {
    set_integer(value, event.*Member);
}

template <auto Member>
void read_collective_integer(ondemand::value& value, Event& event) {
    set_integer(value, event.collective.*Member);
}

template <auto Member>
void read_collective_text(ondemand::value& value, Event& event) {
    event.collective.*Member = text_of(value);
}

constexpr Argument kArguments[]{
    {"External id", read_integer<&Event::external_id>},
    {"external id", read_integer<&Event::external_id>},
    {"External Id", read_integer<&Event::external_id>},
    {"correlation", read_integer<&Event::correlation>},
    {"correlation id", read_integer<&Event::correlation>},
    {"device", read_integer<&Event::device>},
    {"stream", read_integer<&Event::stream>},
    {"Sequence number", read_integer<&Event::sequence>},
    {"sequence number", read_integer<&Event::sequence>},
    {"Fwd thread id", read_integer<&Event::forward_thread>},
    {"fwd_thread_id", read_integer<&Event::forward_thread>},
    {"grid", [](ondemand::value& v, Event& e) { set_dimensions(v, e.grid); }},
    {"block", [](ondemand::value& v, Event& e) { set_dimensions(v, e.block); }},
    {"registers per thread", read_integer<&Event::registers_per_thread>},
    {"shared memory", read_integer<&Event::shared_memory_bytes>},
    {"bytes", read_integer<&Event::copied_bytes>},
    {"Addr", read_integer<&Event::address>},
    {"Total Allocated", read_integer<&Event::allocated_bytes>},
    {"Total Reserved", read_integer<&Event::reserved_bytes>},
    {"Device Id", read_integer<&Event::memory_device>},
    {"Device Type", read_integer<&Event::memory_device_type>},
    {"Bytes", [](ondemand::value& v,
                 Event& e) { e.has_changed_bytes = parse_integer(token_of(v), e.changed_bytes); }},
    {"Call stack", [](ondemand::value& v, Event& e) { e.call_stack = text_of(v); }},
    {"Call stack id", read_integer<&Event::stack_id>},
    {"Parent stack id", read_integer<&Event::parent_stack_id>},
    {"name", [](ondemand::value& v, Event& e) { e.metadata_name = text_of(v); }},
    {"Collective name", read_collective_text<&CollectiveArguments::name>},
    {"Process Group Name", read_collective_text<&CollectiveArguments::group>},
    {"Process Group Description", read_collective_text<&CollectiveArguments::description>},
    {"Process Group Ranks", read_collective_text<&CollectiveArguments::ranks>},
    {"dtype", read_collective_text<&CollectiveArguments::dtype>},
    {"In msg nelems", read_collective_integer<&CollectiveArguments::in_elements>},
    {"Out msg nelems", read_collective_integer<&CollectiveArguments::out_elements>},
    {"Group size", read_collective_integer<&CollectiveArguments::num_ranks>},
    {"Src Rank", read_collective_integer<&CollectiveArguments::peer>},
    {"Dst Rank", read_collective_integer<&CollectiveArguments::peer>},
};

error_code read_arguments(ondemand::value& value, Event& event) {
    ondemand::object object;
    ondemand::json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != ondemand::json_type::object) return simdjson::SUCCESS;
    if (const auto error = value.get_object().get(object)) return error;
    for (auto field : object) {
        ondemand::raw_json_string key;
        if (const auto error = field.key().get(key)) return error;
        for (const Argument& argument : kArguments) {
            if (!key.unsafe_is_equal(argument.key)) continue;
            ondemand::value read;
            if (const auto error = field.value().get(read)) return error;
            argument.read(read, event);
            break;
        }
    }
    return simdjson::SUCCESS;
}

error_code read_field(ondemand::raw_json_string key, ondemand::value& value, Event& event) {
    const char* const text = key.raw();
    const auto is = [&](std::string_view name) { return key.unsafe_is_equal(name); };
    switch (text[0]) {
        case 'a':
            if (is("args")) return read_arguments(value, event);
            break;
        case 'c':
            if (is("cat")) event.category = text_of(value);
            break;
        case 'd':
            if (is("dur")) parse_microseconds(token_of(value), event.duration_ns);
            break;
        case 'i':
            if (is("id")) set_integer(value, event.id);
            break;
        case 'n':
            if (is("name")) event.name = text_of(value);
            break;
        case 'p':
            if (is("ph")) {
                const std::string_view phase = token_of(value);
                event.phase = phase.empty() ? '\0' : phase[0];
            } else if (is("pid")) {
                event.process = token_of(value);
            }
            break;
        case 't':
            if (is("ts")) event.has_time = parse_microseconds(token_of(value), event.time_ns);
            if (is("tid")) event.thread = token_of(value);
            break;
        default:
            break;
    }
    return simdjson::SUCCESS;
}

}  // namespace

bool parse_microseconds(std::string_view token, int64_t& nanoseconds) {
    const bool is_negative = token.starts_with('-');
    std::string_view digits = token.substr(is_negative ? 1 : 0);
    if (digits.empty() || digits.size() > 30) return false;
    int64_t number = 0;
    int fraction_digits = -1;  // none yet
    for (const char c : digits) {
        if (c == '.' && fraction_digits < 0) {
            fraction_digits = 0;
        } else if (c < '0' || c > '9' || number > INT64_MAX / 20) {
            double real = 0;  // 1.5e3, or a number with too many digits
            const char* const end = token.data() + token.size();
            const auto [rest, error] = std::from_chars(token.data(), end, real);
            if (error != std::errc() || rest != end || !(std::abs(real) * 1000 < kMostNanoseconds))
                return false;
            nanoseconds = std::llround(real * 1000);
            return true;
        } else if (fraction_digits < 3) {
            number = number * 10 + (c - '0');
            fraction_digits += fraction_digits >= 0 ? 1 : 0;
        }
    }
    for (int i = std::max(fraction_digits, 0); i < 3; ++i) {
        if (number > (int64_t{1} << 62) / 10) return false;
        number *= 10;
    }
    nanoseconds = is_negative ? -number : number;
    return true;
}

error_code read_event(ondemand::object object, Event& event) {
    event = {};
    for (auto field : object) {
        ondemand::raw_json_string key;
        ondemand::value value;
        if (const auto error = field.key().get(key)) return error;
        if (const auto error = field.value().get(value)) return error;
        if (const auto error = read_field(key, value, event)) return error;
    }
    return simdjson::SUCCESS;
}

}  // namespace profiler::kineto
