#include "profiler/virtual_gpu/card.h"

#include <nlohmann/json.hpp>

#include <unistd.h>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace profiler::virtual_gpu {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDevices = 64;  // as many as torch has

int64_t positive(const json& card, const char* key) {
    const auto value = card.at(key).get<int64_t>();
    if (value <= 0) throw std::invalid_argument(std::string(key) + " is not above zero");
    return value;
}

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
    if (minor.ec != std::errc() || minor.ptr != end) {
        throw std::invalid_argument("compute_capability '" + text + "' is not like 8.0");
    }
}

Card parse_card(const json& object) {
    Card card;
    card.name = object.at("name").get<std::string>();
    parse_capability(object.at("compute_capability").get<std::string>(), card);
    card.total_bytes = positive(object, "total_bytes");
    card.context_bytes = object.at("context_bytes").get<int64_t>();
    card.sm_count = positive_int(object, "sm_count");
    card.l2_bytes = positive(object, "l2_bytes");
    card.threads_per_sm = positive_int(object, "threads_per_sm");
    card.blocks_per_sm = positive_int(object, "blocks_per_sm");
    card.shared_bytes_per_sm = positive(object, "shared_bytes_per_sm");
    card.shared_bytes_per_block = positive(object, "shared_bytes_per_block");
    if (card.context_bytes < 0 || card.context_bytes > card.total_bytes) {
        throw std::invalid_argument("context_bytes is not between 0 and total_bytes");
    }
    return card;
}

Placement parse_placement(const std::string& name) {
    if (name == "ascending") return Placement::kAscending;
    if (name == "descending") return Placement::kDescending;
    throw std::invalid_argument("placement '" + name + "' is neither ascending nor descending");
}

Machine read_machine() {
    const char* const text = std::getenv(kEnvironmentVariable);
    try {
        if (text == nullptr) throw std::invalid_argument("it is not set");
        return parse_machine(text);
    } catch (const std::exception& error) {
        std::fprintf(stderr,
                     "The virtual GPU cannot start, because %s does not describe a GPU: %s. Start "
                     "it through temposcope, which sets the variable.\n",
                     kEnvironmentVariable, error.what());
        _exit(2);
    }
}

}  // namespace

Machine parse_machine(const std::string& text) try {
    const json object = json::parse(text);
    Machine machine;
    for (const json& card : object.at("devices")) machine.cards.push_back(parse_card(card));
    if (machine.cards.empty() || machine.cards.size() > kMaxDevices) {
        throw std::invalid_argument("devices does not list 1 to 64 GPUs");
    }
    machine.placement = parse_placement(object.value("placement", "ascending"));
    return machine;
} catch (const json::exception& error) {
    throw std::invalid_argument(error.what());
}

const Machine& machine() {
    static const Machine* const machine = new Machine(read_machine());
    return *machine;
}

}  // namespace profiler::virtual_gpu
