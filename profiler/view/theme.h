#pragma once

#include "models/config/result.h"
#include "profiler/analysis/ops/calls.h"
#include "profiler/trace/trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Colours of the window and of exported charts. Code asks for a colour by its meaning.
///
/// Two themes, dark and light, come from assets/themes/*.json, which are part of the program. Fills
/// have a contrast of at least 3:1 against the plot behind them, text 4.5:1 (WCAG 2.1, 1.4.11 and
/// 1.4.3), and colour-blind readers can tell them apart; tests/profiler/view/theme_test.cpp checks
/// this. Colour is never the only cue: each category has a hatch, each recipe a marker.
namespace profiler {

struct Color {
    uint8_t r = 0;
    uint8_t g = 0;
    uint8_t b = 0;

    friend constexpr bool operator==(Color, Color) = default;
};

/// The colour between `from` (t = 0) and `to` (t = 1), mixed in sRGB.
Color mix(Color from, Color to, double t);
/// "#4F81BD"
std::string to_hex(Color color);
/// WCAG 2.1 contrast ratio, 1 to 21.
double contrast_ratio(Color a, Color b);

/// The second cue of a category: a pattern over its fill.
enum class Hatch : uint8_t {
    kNone,
    kDiagonal,      // ///
    kBackDiagonal,  // backslashes
    kCross,         // both diagonals
    kHorizontal,
    kVertical,
    kGrid,
    kDots,
    kBricks,    // dashes, shifted from row to row
    kUprights,  // upright dashes, shifted from column to column
    kPluses
};

/// The second cue of a recipe: the marker of its points.
enum class Marker : uint8_t { kCircle, kSquare, kDiamond, kUp, kDown, kCross, kPlus, kLeft };

struct Theme {
    std::string name;  // "dark"
    bool is_dark = false;
    Color background;  // the window behind the panels
    Color panel;       // surface of a panel
    Color raised;      // controls, table headers, tooltips
    Color border;      // lines between surfaces
    Color plot;        // inside of a plot, and the paper of an exported chart
    Color text;        // values
    Color dim_text;    // labels, axes
    Color accent;      // selection, focus
    Color good;        // a saving
    Color bad;         // a cost, an error
    Color warning;     // what may be wrong
    std::array<Color, kCategoryNames.size()> categories{};     // by Category
    std::array<Color, kCallClassNames.size()> call_classes{};  // by CallClass
    std::vector<Color> recipes;  // by recipe_color_indices: grey for `original`, the accent, ...
};

const Theme& dark_theme();
const Theme& light_theme();

/// Reads a theme file. Errors: a missing colour, a colour that is not "#RRGGBB".
models::Result<Theme> parse_theme(std::string_view json);

/// Categories from the bottom of a stack to its top: long-lived memory below, short-lived above.
inline constexpr std::array<Category, kCategoryNames.size()> kCategoryStackOrder{
    Category::kParameter, Category::kOptimizerState, Category::kWeightCopy, Category::kInput,
    Category::kGradient,  Category::kHeld,           Category::kActivation, Category::kRecomputed,
    Category::kTemporary, Category::kWorkspace,      Category::kUnknown};

/// Those of which `holds` is true, in that order.
template <typename Predicate>
std::vector<Category> categories_where(const Predicate& holds) {
    std::vector<Category> categories;
    std::ranges::copy_if(kCategoryStackOrder, std::back_inserter(categories), holds);
    return categories;
}

inline Color color_of(const Theme& theme, Category category) {
    return theme.categories[static_cast<std::size_t>(category)];
}
inline Color color_of(const Theme& theme, CallClass call_class) {
    return theme.call_classes[static_cast<std::size_t>(call_class)];
}
/// Colour, marker and pattern of recipe_color_indices. Colours repeat after kMaxDistinctRecipes;
/// recipes of one colour then differ in their marker and their pattern.
Color recipe_color(const Theme& theme, std::size_t index);
/// The hue of A (0) and of B (1), where only these two are shown: always the same, whatever their
/// recipes are.
Color side_color(const Theme& theme, std::size_t side);
Marker recipe_marker(std::size_t index);
Hatch recipe_hatch(std::size_t index);
inline constexpr std::size_t kMaxDistinctRecipes = 8;

/// The index of each recipe's colour, marker and pattern, whatever the order of the recipes. The
/// place of a preset in models::recipe_presets() decides; if an earlier preset has that colour, it
/// takes the next free one. Other recipes take what is left. Grey belongs to `original`: another
/// recipe gets it only when every other colour is taken. From kMaxDistinctRecipes on, an index
/// stands for a colour that is used again.
std::vector<std::size_t> recipe_color_indices(const std::vector<std::string>& recipes);
/// The same beside recipes that have their colour already, which they keep.
std::vector<std::size_t> recipe_color_indices(
    const std::vector<std::string>& recipes,
    const std::unordered_map<std::string, std::size_t>& known);

/// Black or white, whichever reads better on `fill`.
Color ink_on(Color fill);

Hatch hatch_of(Category category);
/// For legends and tables: "Parameters", "Saved activations".
std::string_view label_of(Category category);
std::string_view label_of(CallClass call_class);  // "Contractions", "Copies"

}  // namespace profiler
