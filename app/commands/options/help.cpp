#include "app/commands/options/help.h"

#include "models/config/precision.h"
#include "models/config/recipe.h"
#include "models/config/switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace app {
namespace {

constexpr std::size_t kPageColumns = 100;

}  // namespace

std::string two_columns(const std::string& name, const std::string& text, std::size_t name_width) {
    std::string result = fmt::format("  {:<{}}", name, name_width);
    std::size_t column = result.size();
    if (!name.empty() && name.size() + 1 > name_width) {
        result += fmt::format("\n{:<{}}", "", name_width + 2);
        column = name_width + 2;
    }
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t space = text.find(' ', start);
        const std::string word =
            text.substr(start, space == std::string::npos ? space : space - start);
        if (column + word.size() > kPageColumns) {
            result += fmt::format("\n{:<{}}", "", name_width + 2);
            column = name_width + 2;
        }
        result += word + " ";
        column += word.size() + 1;
        if (space == std::string::npos) break;
        start = space + 1;
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
}

std::string wrapped(const std::string& text) { return two_columns("", text, 0); }

/// The values of a switch that a user can choose: "original, in_place". The value that the recipe
/// `original` has comes first.
std::string list_values(const auto& table) {
    const models::Recipe original{};
    const models::SwitchValue& first = table.chosen(original);
    std::string text(first.name);
    for (const auto& row : table.rows) {
        if (&row.is == &first || row.is.runs_on == models::RunsOn::kNowhere) continue;
        text += fmt::format(", {}", row.is.name);
    }
    return text;
}

std::string about_recipe_list() {
    return "with commas between, or all. Names separate recipes; key=value modifies the recipe to "
           "its left: original,tempo,masks=bit are original, and tempo with masks=bit; see below";
}

std::string list_precisions() {
    return fmt::format("{}", fmt::join(models::kPrecisionNames, ", "));
}

std::string list_recipes() {
    std::string text = "Recipes:\n";
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        text += two_columns(std::string(preset.name), std::string(preset.summary), 36);
    }
    text +=
        "\nA recipe can also be a list of switches, alone or after a name from above:\n"
        "gelu=in_place,masks=bit or tempo,masks=bit.\n"
        "Switches and their values (the first is the value in the recipe original):\n";
    models::for_each_switch([&](const auto& table) {
        text += two_columns(std::string(table.name), list_values(table), 36);
    });
    text +=
        "\nSome layers can have another recipe, which follows after '+': original+tempo@0-11,\n"
        "tempo+masks=bit@3.\n";
    return text;
}

}  // namespace app
