// Goal: every reader can tell the colours apart, in both themes.
// Method: WCAG contrast against every surface behind a colour; colour blindness simulated with the
// matrices of Machado, Oliveira and Fernandes (2009, severity 1.0), differences in OKLab.

#include "profiler/view/theme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace profiler;
using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kProtanopia{{{0.152286, 1.052583, -0.204868},
                              {0.114503, 0.786281, 0.099216},
                              {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{{{0.367322, 0.860646, -0.227968},
                                {0.280085, 0.672501, 0.047413},
                                {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kTritanopia{{{1.255528, -0.076749, -0.178779},
                              {-0.078411, 0.930809, 0.147602},
                              {0.004733, 0.691367, 0.303900}}};

Vector multiply(const Matrix& m, const Vector& v) {
    Vector result{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) result[i] += m[i][j] * v[j];
    }
    return result;
}

double linear(uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

/// Ottosson's OKLab, as a reader with that `vision` sees the colour.
Vector oklab(Color color, const Matrix& vision) {
    constexpr Matrix kToCones{{{0.4122214708, 0.5363325363, 0.0514459929},
                               {0.2119034982, 0.6806995451, 0.1073969566},
                               {0.0883024619, 0.2817188376, 0.6299787005}}};
    constexpr Matrix kToLab{{{0.2104542553, 0.7936177850, -0.0040720468},
                             {1.9779984951, -2.4285922050, 0.4505937099},
                             {0.0259040371, 0.7827717662, -0.8086757660}}};
    const Vector rgb{linear(color.r), linear(color.g), linear(color.b)};
    Vector cones = multiply(kToCones, multiply(vision, rgb));
    for (double& c : cones) c = std::cbrt(std::max(c, 0.0));
    return multiply(kToLab, cones);
}

double difference(Color a, Color b, const Matrix& vision) {
    const Vector x = oklab(a, vision);
    const Vector y = oklab(b, vision);
    return 100 * std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

template <typename Colors>
double smallest_difference(const Colors& colors, const Matrix& vision) {
    double smallest = 1e9;
    for (std::size_t i = 0; i < colors.size(); ++i) {
        for (std::size_t j = i + 1; j < colors.size(); ++j) {
            smallest = std::min(smallest, difference(colors[i], colors[j], vision));
        }
    }
    return smallest;
}

class Themes : public testing::TestWithParam<const Theme*> {};

TEST_P(Themes, FillsStandOutFromEverySurfaceTheyAreDrawnOn) {
    const Theme& theme = *GetParam();
    for (const Color surface : {theme.plot, theme.panel}) {
        for (std::size_t i = 0; i < theme.categories.size(); ++i) {
            EXPECT_GE(contrast_ratio(theme.categories[i], surface), 3.0) << kCategoryNames[i];
        }
        for (std::size_t i = 0; i < theme.call_classes.size(); ++i) {
            EXPECT_GE(contrast_ratio(theme.call_classes[i], surface), 3.0) << kCallClassNames[i];
        }
        for (std::size_t i = 0; i < theme.recipes.size(); ++i) {
            EXPECT_GE(contrast_ratio(theme.recipes[i], surface), 3.0) << "recipe " << i;
        }
    }
}

TEST_P(Themes, TextIsReadableOnEverySurface) {
    const Theme& theme = *GetParam();
    for (const Color surface : {theme.panel, theme.plot, theme.raised}) {
        EXPECT_GE(contrast_ratio(theme.text, surface), 7.0);
        EXPECT_GE(contrast_ratio(theme.dim_text, surface), 4.5);
    }
    for (const Color surface : {theme.panel, theme.plot}) {
        for (const Color color : {theme.good, theme.bad, theme.warning}) {
            EXPECT_GE(contrast_ratio(color, surface), 4.5) << to_hex(color);
        }
    }
}

/// How far the colours of a palette stay apart, for readers with and without colour blindness.
void expect_apart(const auto& colors, double apart, double apart_if_colour_blind) {
    EXPECT_GE(smallest_difference(colors, kNormal), apart);
    for (const Matrix& vision : {kProtanopia, kDeuteranopia, kTritanopia}) {
        EXPECT_GE(smallest_difference(colors, vision), apart_if_colour_blind);
    }
}

TEST_P(Themes, CategoriesStayApartForColourBlindReaders) {
    expect_apart(GetParam()->categories, 12, 6.5);
}

TEST_P(Themes, RecipesStayApartForColourBlindReaders) { expect_apart(GetParam()->recipes, 9, 5); }

TEST_P(Themes, CallClassesStayApartForColourBlindReaders) {
    expect_apart(GetParam()->call_classes, 10, 6.5);
}

/// Calls and categories share a time axis, in panels above each other.
TEST_P(Themes, NoActivityAndNoRecipeHasTheColourOfACategory) {
    const Theme& theme = *GetParam();
    std::vector<Color> others(theme.call_classes.begin(), theme.call_classes.end());
    others.insert(others.end(), theme.recipes.begin(), theme.recipes.end());
    for (const Color other : others) {
        for (const Color category : theme.categories) {
            EXPECT_GE(difference(other, category, kNormal), 4) << to_hex(other) << to_hex(category);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(DarkAndLight, Themes, testing::Values(&dark_theme(), &light_theme()),
                         [](const auto& instance) { return instance.param->name; });

TEST(Themes, EachCategoryHasItsOwnHatchAndLabel) {
    std::set<Hatch> hatches;
    std::set<std::string_view> labels;
    for (const Category category : kCategoryStackOrder) {
        hatches.insert(hatch_of(category));
        labels.insert(label_of(category));
    }
    EXPECT_EQ(hatches.size(), kCategoryNames.size());
    EXPECT_EQ(labels.size(), kCategoryNames.size());
}

TEST(Themes, StackOrderHoldsEachCategoryOnce) {
    const std::set<Category> categories(kCategoryStackOrder.begin(), kCategoryStackOrder.end());
    EXPECT_EQ(categories.size(), kCategoryNames.size());
}

TEST(ContrastRatio, IsThatOfWcag) {
    EXPECT_NEAR(contrast_ratio({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
    EXPECT_NEAR(contrast_ratio({0x77, 0x77, 0x77}, {255, 255, 255}), 4.48, 0.005);
    EXPECT_EQ(contrast_ratio({9, 9, 9}, {9, 9, 9}), 1);
}

TEST(ParseTheme, RefusesWhatIsMissingOrMalformedInOneSentence) {
    EXPECT_EQ(parse_theme("[]").error().message, "The theme is not a JSON object.");
    EXPECT_EQ(parse_theme("{").error().message, "The theme is not a JSON object.");
    EXPECT_EQ(parse_theme(R"({"name":"x"})").error().message,
              R"(The theme needs a "name" and "is_dark": true or false.)");
    EXPECT_EQ(parse_theme(R"({"name":"x","is_dark":true})").error().message,
              R"(The theme has no colour "background"; give it as "#RRGGBB".)");
    EXPECT_EQ(parse_theme(R"({"name":"x","is_dark":true,"colors":{"background":"#12345G"}})")
                  .error()
                  .message,
              R"(The theme's colour "background" is "#12345G"; give it as "#RRGGBB".)");
    EXPECT_FALSE(parse_theme(R"({"name":"x","is_dark":true,"colors":[1]})"));
    EXPECT_FALSE(parse_theme(R"({"name":"x","is_dark":true,"colors":{"background":7}})"));
}

TEST(Mix, GoesFromOneColourToTheOther) {
    EXPECT_EQ(mix({0, 0, 0}, {255, 100, 10}, 0), (Color{0, 0, 0}));
    EXPECT_EQ(mix({0, 0, 0}, {255, 100, 10}, 1), (Color{255, 100, 10}));
    EXPECT_EQ(to_hex(mix({0, 0, 0}, {254, 100, 10}, 0.5)), "#7F3205");
}

TEST(InkOn, ReadsOnEveryCategoryAndRecipe) {
    for (const Theme* theme : {&light_theme(), &dark_theme()}) {
        std::vector<Color> fills = theme->recipes;
        fills.insert(fills.end(), theme->categories.begin(), theme->categories.end());
        fills.insert(fills.end(), theme->call_classes.begin(), theme->call_classes.end());
        for (const Color fill : fills) {
            EXPECT_GE(contrast_ratio(ink_on(fill), fill), 4.5) << to_hex(fill);
        }
    }
}

/// The first presets have colours of their own, whatever stands beside them.
TEST(RecipeColorIndices, APresetKeepsItsColorInEveryOrder) {
    const std::vector<std::string> some{"original", "tempo", "tempo-packed", "checkpoint", "flash"};
    const auto colors = recipe_color_indices(some);
    EXPECT_EQ(colors[0], 0U);
    EXPECT_EQ(std::set<std::size_t>(colors.begin(), colors.end()).size(), some.size());
    const std::vector<std::string> reversed(some.rbegin(), some.rend());
    EXPECT_EQ(recipe_color_indices(reversed),
              std::vector<std::size_t>(colors.rbegin(), colors.rend()));
    EXPECT_EQ(recipe_color_indices({"tempo-packed"}).front(), colors[2]);
    EXPECT_EQ(recipe_color_indices({"flash", "original"}).front(), colors[4]);
}

TEST(RecipeColorIndices, OtherRecipesTakeFreeColors) {
    const auto colors = recipe_color_indices({"masks=bit", "original-stock", "gelu=in_place"});
    EXPECT_EQ(colors[1], recipe_color_indices({"original-stock"}).front());
    EXPECT_EQ(std::set<std::size_t>(colors.begin(), colors.end()).size(), 3U);
    EXPECT_FALSE(std::set<std::size_t>(colors.begin(), colors.end()).contains(0)) << "grey";
    EXPECT_EQ(recipe_color_indices({"gelu=in_place", "masks=bit", "original-stock"}),
              (std::vector{colors[2], colors[0], colors[1]}));
}

TEST(RecipeColorIndices, KnownRecipesKeepTheirColour) {
    const std::size_t of_flash = recipe_color_indices({"flash"}).front();
    const auto colors =
        recipe_color_indices({"original", "flash", "gelu=in_place"}, {{"gelu=in_place", of_flash}});
    EXPECT_EQ(colors[0], 0U);
    EXPECT_EQ(colors[2], of_flash);
    EXPECT_NE(colors[1] % kMaxDistinctRecipes, of_flash);
}

TEST(RecipeColorIndices, TwoColumnsOfARecipeDiffer) {
    const auto colors = recipe_color_indices({"tempo", "tempo"});
    EXPECT_NE(colors[0], colors[1]);
}

/// As many as there are colours, so that each is taken once.
TEST(RecipeColorIndices, RepeatColorsOnlyAfterAllAreTaken) {
    std::vector<std::string> recipes;
    for (std::size_t i = 0; i < 2 * kMaxDistinctRecipes; ++i) {
        recipes.push_back("r" + std::to_string(i));
        std::map<std::size_t, int> uses;
        for (const std::size_t index : recipe_color_indices(recipes)) {
            ++uses[index % kMaxDistinctRecipes];
        }
        EXPECT_EQ(uses.size(), std::min(recipes.size(), kMaxDistinctRecipes));
        for (const auto& [color, count] : uses) {
            EXPECT_LE(count, i < kMaxDistinctRecipes ? 1 : 2) << color;
        }
    }
}

/// Colour is never the only cue: of one colour, markers and patterns differ.
TEST(RecipeColorIndices, RecipesOfOneColorDifferInMarkerAndPattern) {
    std::vector<std::string> recipes;
    for (int i = 0; i < 24; ++i) recipes.push_back("r" + std::to_string(i));
    std::set<std::pair<std::string, Marker>> marks;
    std::set<std::pair<std::string, Hatch>> fills;
    for (const std::size_t index : recipe_color_indices(recipes)) {
        const std::string color = to_hex(recipe_color(dark_theme(), index));
        marks.insert({color, recipe_marker(index)});
        fills.insert({color, recipe_hatch(index)});
        EXPECT_EQ(recipe_hatch(index) == Hatch::kNone, index < kMaxDistinctRecipes);
    }
    EXPECT_EQ(marks.size(), recipes.size());
    EXPECT_EQ(fills.size(), recipes.size());
}

}  // namespace
