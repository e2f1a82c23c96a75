#include "profiler/view/theme.h"

#include "embedded/temposcope_themes.h"
#include "models/config/recipe.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

struct NamedColor {
    const char* name;
    Color Theme::*member;
};
constexpr std::array<NamedColor, 11> kNamedColors{{{"background", &Theme::background},
                                                   {"panel", &Theme::panel},
                                                   {"raised", &Theme::raised},
                                                   {"border", &Theme::border},
                                                   {"plot", &Theme::plot},
                                                   {"text", &Theme::text},
                                                   {"dim_text", &Theme::dim_text},
                                                   {"accent", &Theme::accent},
                                                   {"good", &Theme::good},
                                                   {"bad", &Theme::bad},
                                                   {"warning", &Theme::warning}}};

models::Result<Color> parse_color(const nlohmann::json& json, std::string_view name) {
    if (!json.is_string()) {
        return models::fail("The theme has no colour \"{}\"; give it as \"#RRGGBB\".", name);
    }
    const std::string text = json.get<std::string>();
    unsigned rgb = 0;
    const char* end = text.data() + text.size();
    const bool is_hex =
        text.size() == 7 && text[0] == '#' &&
        std::from_chars(text.data() + 1, end, rgb, 16) == std::from_chars_result{end, std::errc{}};
    if (!is_hex) {
        return models::fail("The theme's colour \"{}\" is \"{}\"; give it as \"#RRGGBB\".", name,
                            text);
    }
    return Color{static_cast<uint8_t>(rgb >> 16), static_cast<uint8_t>(rgb >> 8 & 255),
                 static_cast<uint8_t>(rgb & 255)};
}

/// The member `key` of `json`; null when there is none.
nlohmann::json member(const nlohmann::json& json, std::string_view key) {
    if (!json.is_object()) return nullptr;
    const auto found = json.find(key);
    return found == json.end() ? nlohmann::json(nullptr) : *found;
}

models::Result<void> parse_surfaces(const nlohmann::json& json, Theme& theme) {
    for (const NamedColor& named : kNamedColors) {
        const auto color = parse_color(member(member(json, "colors"), named.name), named.name);
        if (!color) return tl::unexpected(color.error());
        theme.*named.member = *color;
    }
    return {};
}

models::Result<void> parse_data_colors(const nlohmann::json& json, Theme& theme) {
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        const auto color =
            parse_color(member(member(json, "roles"), kCategoryNames[i]), kCategoryNames[i]);
        if (!color) return tl::unexpected(color.error());
        theme.categories[i] = *color;
    }
    for (std::size_t i = 0; i < kCallClassNames.size(); ++i) {
        const std::string_view name = kCallClassNames[i];
        const auto color = parse_color(member(member(json, "activities"), name), name);
        if (!color) return tl::unexpected(color.error());
        theme.call_classes[i] = *color;
    }
    const nlohmann::json recipes = member(json, "recipes");
    if (!recipes.is_array() || recipes.size() != kMaxDistinctRecipes) {
        return models::fail("The theme's \"recipes\" must be a list of {} colours.",
                            kMaxDistinctRecipes);
    }
    for (const nlohmann::json& item : recipes) {
        const auto color = parse_color(item, "recipes");
        if (!color) return tl::unexpected(color.error());
        theme.recipes.push_back(*color);
    }
    return {};
}

/// A theme that is part of the program. If it is broken, that is a mistake in the program, so this
/// throws.
Theme parse_embedded(std::string_view json) {
    models::Result<Theme> theme = parse_theme(json);
    if (!theme) throw std::logic_error(theme.error().message);
    return *std::move(theme);
}

double linear(uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

/// WCAG 2.1, "relative luminance".
double luminance(Color color) {
    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

using ColorUses = std::array<int, kMaxDistinctRecipes>;

/// The index of the least used colour, from the wanted one on; grey last.
std::size_t take_color(std::size_t place, ColorUses& uses) {
    const bool is_preset = place < models::recipe_presets().size();
    const std::size_t wanted = is_preset ? place % kMaxDistinctRecipes : 1;
    const auto rank = [&](std::size_t color) {
        return std::tuple(uses[color], color == 0 && place != 0,
                          (color + kMaxDistinctRecipes - wanted) % kMaxDistinctRecipes);
    };
    std::size_t best = 0;
    for (std::size_t color = 1; color < kMaxDistinctRecipes; ++color) {
        if (rank(color) < rank(best)) best = color;
    }
    const auto earlier = static_cast<std::size_t>(uses[best]++);
    return best + earlier * kMaxDistinctRecipes;
}

}  // namespace

std::vector<std::size_t> recipe_color_indices(const std::vector<std::string>& recipes) {
    return recipe_color_indices(recipes, {});
}

std::vector<std::size_t> recipe_color_indices(
    const std::vector<std::string>& recipes,
    const std::unordered_map<std::string, std::size_t>& known) {
    std::vector<std::size_t> order(recipes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return std::tuple(models::preset_place(recipes[a]), std::string_view(recipes[a])) <
               std::tuple(models::preset_place(recipes[b]), std::string_view(recipes[b]));
    });
    std::vector<std::size_t> colors(recipes.size());
    ColorUses uses{};
    for (const auto& [recipe, color] : known) ++uses[color % kMaxDistinctRecipes];
    for (const std::size_t i : order) {
        const auto found = known.find(recipes[i]);
        if (found != known.end()) {
            colors[i] = found->second;
            continue;
        }
        const auto is_known = [&](const auto& one) { return one.second == colors[i]; };
        do {
            colors[i] = take_color(models::preset_place(recipes[i]), uses);
        } while (std::ranges::any_of(known, is_known));
    }
    return colors;
}

models::Result<Theme> parse_theme(std::string_view text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return models::fail("The theme is not a JSON object.");
    const nlohmann::json name = member(json, "name");
    const nlohmann::json is_dark = member(json, "is_dark");
    if (!name.is_string() || !is_dark.is_boolean()) {
        return models::fail("The theme needs a \"name\" and \"is_dark\": true or false.");
    }
    Theme theme{.name = name.get<std::string>(), .is_dark = is_dark.get<bool>()};
    if (auto parsed = parse_surfaces(json, theme); !parsed) return tl::unexpected(parsed.error());
    if (auto parsed = parse_data_colors(json, theme); !parsed) {
        return tl::unexpected(parsed.error());
    }
    return theme;
}

const Theme& dark_theme() {
    static const Theme theme = parse_embedded(embedded::dark_theme_json());
    return theme;
}

const Theme& light_theme() {
    static const Theme theme = parse_embedded(embedded::light_theme_json());
    return theme;
}

Color mix(Color from, Color to, double t) {
    const auto channel = [t](uint8_t a, uint8_t b) {
        return static_cast<uint8_t>(std::lround(a + (b - a) * std::clamp(t, 0.0, 1.0)));
    };
    return {channel(from.r, to.r), channel(from.g, to.g), channel(from.b, to.b)};
}

std::string to_hex(Color color) {
    return fmt::format("#{:02X}{:02X}{:02X}", color.r, color.g, color.b);
}

double contrast_ratio(Color a, Color b) {
    const auto [low, high] = std::minmax({luminance(a), luminance(b)});
    return (high + 0.05) / (low + 0.05);
}

Color recipe_color(const Theme& theme, std::size_t index) {
    return theme.recipes[index % theme.recipes.size()];
}

Color side_color(const Theme& theme, std::size_t side) {
    constexpr std::size_t kGrey = 0, kAmber = 2;  // neither stands for better, worse or selected
    return recipe_color(theme, side == 0 ? kGrey : kAmber);
}

Marker recipe_marker(std::size_t index) {
    static_assert(static_cast<std::size_t>(Marker::kLeft) + 1 == kMaxDistinctRecipes);
    // The next use of a colour begins one marker further on.
    return static_cast<Marker>((index + index / kMaxDistinctRecipes) % kMaxDistinctRecipes);
}

Hatch recipe_hatch(std::size_t index) {
    constexpr std::array<Hatch, 8> kByUse{Hatch::kNone,     Hatch::kCross,       Hatch::kHorizontal,
                                          Hatch::kDots,     Hatch::kGrid,        Hatch::kVertical,
                                          Hatch::kDiagonal, Hatch::kBackDiagonal};
    return kByUse[index / kMaxDistinctRecipes % kByUse.size()];
}

Color ink_on(Color fill) {
    constexpr Color kDark{0x05, 0x07, 0x0A};
    constexpr Color kLight{0xFF, 0xFF, 0xFF};
    return contrast_ratio(fill, kLight) >= contrast_ratio(fill, kDark) ? kLight : kDark;
}

Hatch hatch_of(Category category) {
    constexpr std::array<Hatch, kCategoryNames.size()> kHatches{
        Hatch::kNone,   Hatch::kBackDiagonal, Hatch::kHorizontal, Hatch::kDiagonal,
        Hatch::kDots,   Hatch::kVertical,     Hatch::kGrid,       Hatch::kCross,
        Hatch::kBricks, Hatch::kPluses,       Hatch::kUprights};
    return kHatches[static_cast<std::size_t>(category)];
}

std::string_view label_of(CallClass call_class) {
    constexpr std::array<std::string_view, kCallClassNames.size()> kLabels{
        "Contractions", "Normalizations", "Element-wise", "Other", "Copies"};
    return kLabels[static_cast<std::size_t>(call_class)];
}

std::string_view label_of(Category category) {
    constexpr std::array<std::string_view, kCategoryNames.size()> kLabels{"Parameters",
                                                                          "Gradients",
                                                                          "Optimizer state",
                                                                          "Saved activations",
                                                                          "Temporaries",
                                                                          "Workspace",
                                                                          "Inputs",
                                                                          "Unknown",
                                                                          "Held by the program",
                                                                          "Recomputed activations",
                                                                          "Copies of weights"};
    return kLabels[static_cast<std::size_t>(category)];
}

}  // namespace profiler
