#include "profiler/virtual_gpu/card.h"

#include <nlohmann/json.hpp>

#include <unistd.h>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace profiler::virtual_gpu {
namespace {

using nlohmann::json;

constexpr int64_t kMaxBytes = int64_t{1} << 40;

const json& field(const json& object, const char* key) {
    if (!object.is_object() || !object.contains(key)) {
        throw std::invalid_argument(std::string(key) + " is missing");
    }
    return object.at(key);
}

std::string text_in(const json& object, const char* key) {
    const json& value = field(object, key);
    if (!value.is_string()) throw std::invalid_argument(std::string(key) + " is not a text");
    return value.get<std::string>();
}

int64_t whole_in(const json& object, const char* key, int64_t least) {
    const json& value = field(object, key);
    if (!value.is_number_integer() || value < least || value > kMaxBytes) {
        throw std::invalid_argument(std::string(key) + " is not a whole number from " +
                                    std::to_string(least) + " to 2^40");
    }
    return value.get<int64_t>();
}

int64_t positive(const json& card, const char* key) { return whole_in(card, key, 1); }

int positive_int(const json& card, const char* key) {
    const int64_t value = positive(card, key);
    if (value > INT32_MAX) throw std::invalid_argument(std::string(key) + " is too large");
    return static_cast<int>(value);
}

/// "8.0"
void parse_capability(const std::string& text, Card& card) {
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data(), end, card.major);
    const bool has_dot = error == std::errc() && dot != end && *dot == '.';
    const auto minor = has_dot ? std::from_chars(dot + 1, end, card.minor)
                               : std::from_chars_result{text.data(), std::errc::invalid_argument};
    if (minor.ec != std::errc() || minor.ptr != end || card.major < 1 || card.minor < 0) {
        throw std::invalid_argument("compute_capability '" + text + "' is not like 8.0");
    }
}

Card parse_card(const json& object) {
    Card card;
    card.name = text_in(object, "name");
    parse_capability(text_in(object, "compute_capability"), card);
    card.total_bytes = positive(object, "total_bytes");
    card.context_bytes = whole_in(object, "context_bytes", 0);
    card.sm_count = positive_int(object, "sm_count");
    card.l2_bytes = positive(object, "l2_bytes");
    card.threads_per_sm = positive_int(object, "threads_per_sm");
    card.blocks_per_sm = positive_int(object, "blocks_per_sm");
    card.shared_bytes_per_sm = positive(object, "shared_bytes_per_sm");
    card.shared_bytes_per_block = positive(object, "shared_bytes_per_block");
    for (const auto& [key, member] : {std::pair("clock_khz", &Card::clock_khz),
                                      std::pair("memory_clock_khz", &Card::memory_clock_khz),
                                      std::pair("memory_bus_bits", &Card::memory_bus_bits)}) {
        if (object.contains(key)) card.*member = positive_int(object, key);
    }
    if (object.contains("nccl_bytes")) card.nccl_bytes = whole_in(object, "nccl_bytes", 0);
    if (card.context_bytes > card.total_bytes) {
        throw std::invalid_argument("context_bytes is above total_bytes");
    }
    return card;
}

SegmentPlacement parse_placement(const std::string& name) {
    if (name == "ascending") return SegmentPlacement::kAscending;
    if (name == "chunks") return SegmentPlacement::kChunks;
    throw std::invalid_argument("placement '" + name + "' is neither ascending nor chunks");
}

Machine read_machine() {
    const char* const text = std::getenv(kEnvironmentVariable);
    try {
        if (text == nullptr) throw std::invalid_argument("it is not set");
        return parse_machine(text);
    } catch (const std::exception& error) {
        std::fprintf(stderr,
                     "The simulated GPU cannot start, because %s does not describe GPUs: %s. "
                     "docs/dev/virtual_gpu.md has an example.\n",
                     kEnvironmentVariable, error.what());
        _exit(2);
    }
}

}  // namespace

Machine parse_machine(const std::string& text) try {
    const json object = json::parse(text);
    Machine machine;
    const json& devices = field(object, "devices");
    if (!devices.is_array() || devices.empty() || devices.size() > kMaxDevices) {
        throw std::invalid_argument("devices does not list 1 to " + std::to_string(kMaxDevices) +
                                    " GPUs");
    }
    for (const json& card : devices) machine.cards.push_back(parse_card(card));
    if (object.contains("placement")) {
        machine.placement = parse_placement(text_in(object, "placement"));
    }
    return machine;
} catch (const json::exception&) {
    throw std::invalid_argument("it is not valid JSON");
}

const Machine& machine() {
    static const Machine* const machine = new Machine(read_machine());
    return *machine;
}

}  // namespace profiler::virtual_gpu
