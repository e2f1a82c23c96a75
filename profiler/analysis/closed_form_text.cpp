#include "profiler/analysis/closed_form_text.h"

#include <fmt/ranges.h>

#include <array>
#include <map>
#include <string_view>

namespace profiler {
namespace {

constexpr std::array<std::string_view, 12> kUnitNames{
    "n", "f", "T", "R", "BAS", "BAr32(S)", "Br16(S)", "" /* a layer */, "H²", "HI", "H", "I"};

/// A unit and its factor: f is 4n if I = 4H.
struct Multiple {
    Unit unit;
    int64_t factor;
};

Multiple in_hidden_units(Unit unit, int64_t intermediate_per_hidden) {
    if (intermediate_per_hidden > 0) {
        if (unit == Unit::kIntermediate) return {Unit::kHidden, intermediate_per_hidden};
        if (unit == Unit::kHiddenIntermediate)
            return {Unit::kHiddenSquared, intermediate_per_hidden};
        if (unit == Unit::kIntermediateChannels)
            return {Unit::kHiddenChannels, intermediate_per_hidden};
    }
    return {unit, 1};
}

/// The text before a name: "" for 1, "4" for 4.
std::string coefficient(int64_t value) {
    return value == 1 ? std::string() : fmt::to_string(value);
}

struct Coefficients {
    int64_t elements = 0;    // times e
    int64_t bytes = 0;       // times 1
    int64_t statistics = 0;  // times s
};

std::string unit_to_text(std::string_view name, const Coefficients& c) {
    std::vector<std::string> parts;
    if (c.statistics > 0) parts.push_back(fmt::format("{}{}s", coefficient(c.statistics), name));
    if (c.elements > 0 && c.bytes > 0) {
        parts.push_back(fmt::format("{}({}e+{})", name, coefficient(c.elements), c.bytes));
    } else if (c.elements > 0) {
        parts.push_back(fmt::format("{}e{}", coefficient(c.elements), name));
    } else if (c.bytes > 0) {
        parts.push_back(name.empty() ? fmt::to_string(c.bytes)
                                     : fmt::format("{}{}", coefficient(c.bytes), name));
    }
    return fmt::format("{}", fmt::join(parts, "+"));
}

}  // namespace

std::string sum_to_text(const std::vector<Term>& terms, int64_t intermediate_per_hidden) {
    std::array<Coefficients, kUnitNames.size()> by_unit{};
    std::vector<std::pair<std::string, int64_t>> packed;  // "c8(4n)" and its factor
    for (const Term& term : terms) {
        const auto [unit, factor] = in_hidden_units(term.unit, intermediate_per_hidden);
        Coefficients& c = by_unit[static_cast<std::size_t>(unit)];
        switch (term.scale) {
            case Scale::kElement:
                c.elements += factor * term.in_one;
                break;
            case Scale::kBytes:
                c.bytes += factor * term.bytes;
                break;
            case Scale::kStatistic:
                c.statistics += factor;
                break;
            case Scale::kBits: {
                const std::string text = fmt::format("c8({}{})", coefficient(factor),
                                                     kUnitNames[static_cast<std::size_t>(unit)]);
                bool known = false;
                for (auto& [name, count] : packed) {
                    if (name == text) ++count, known = true;
                }
                if (!known) packed.emplace_back(text, 1);
            }
        }
    }
    std::vector<std::string> parts;
    for (std::size_t unit = 0; unit < by_unit.size(); ++unit) {
        if (auto text = unit_to_text(kUnitNames[unit], by_unit[unit]); !text.empty()) {
            parts.push_back(std::move(text));
        }
    }
    for (const auto& [name, count] : packed) parts.push_back(coefficient(count) + name);
    return fmt::format("{}", fmt::join(parts, "+"));
}

std::string to_text(const Term& term, int64_t intermediate_per_hidden) {
    return sum_to_text({term}, intermediate_per_hidden);
}

}  // namespace profiler
