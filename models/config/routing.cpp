#include "models/config/routing.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace models {
namespace {

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && stop == end && !text.empty() ? std::optional(number)
                                                                : std::nullopt;
}

/// A positive number that is not infinite.
std::optional<double> strength_of(std::string_view text) {
    const auto number = number_of<double>(text);
    return number && std::isfinite(*number) && *number > 0 ? number : std::nullopt;
}

}  // namespace

Result<Routing> parse_routing(std::string_view text) {
    using enum Routing::Kind;
    if (text == "balanced") return Routing();
    if (text == "zeros") return Routing{.kind = kZeros};
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    const std::string_view rest = colon == text.npos ? "" : text.substr(colon + 1);
    const auto strength = strength_of(rest);
    if (kind == "zipf" && strength) return Routing{.kind = kZipf, .strength = *strength};
    if (kind == "worst" && strength && *strength >= 1) {
        return Routing{.kind = kWorst, .strength = *strength};
    }
    const auto seed = number_of<uint64_t>(rest);
    if (kind == "seed" && seed) return Routing{.kind = kRandom, .seed = *seed};
    return fail(
        "'{}' is no routing: say balanced, worst:1.5 (the fullest expert gets so many times its "
        "fair share), zipf:1.2 (an exponent), seed:7 or zeros.",
        text);
}

std::string to_text(const Routing& routing) {
    switch (routing.kind) {
        case Routing::Kind::kBalanced:
            return "balanced";
        case Routing::Kind::kZeros:
            return "zeros";
        case Routing::Kind::kZipf:
            return fmt::format("zipf:{}", routing.strength);
        case Routing::Kind::kWorst:
            return fmt::format("worst:{}", routing.strength);
        case Routing::Kind::kRandom:
            return fmt::format("seed:{}", routing.seed);
    }
    throw std::logic_error("not a routing");
}

}  // namespace models
