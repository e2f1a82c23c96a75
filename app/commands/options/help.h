#pragma once

#include "app/commands/options/command_line.h"

#include <cstddef>
#include <string>
#include <utility>

/// What help pages of several commands say. They are 100 columns wide.
namespace app {

/// --device of a command that shows traces: which GPU of a file with several.
inline Option device_option() {
    return {.names = "--device",
            .help = "GPU of a file with several: cuda:1 (without it, the first or busiest)",
            .value_name = "NAME"};
}

/// --format of a command that writes charts.
inline Option format_option(std::string help = "of the charts: svg (the default), png, pdf, html") {
    return {.names = "--format",
            .help = std::move(help),
            .value_name = "LIST",
            .choices = {"svg", "png", "pdf", "html"}};
}

/// All recipes and the switches of a recipe.
std::string list_recipes();
/// The rule by which commas part the recipes of --recipe, with an example.
std::string about_recipe_list();
/// "fp32, tf32, ...": every name that --precision takes.
std::string list_precisions();
/// `name` in a column of its own and `text` wrapped beside it.
std::string two_columns(const std::string& name, const std::string& text, std::size_t name_width);
/// `text` wrapped to the page, indented.
std::string wrapped(const std::string& text);

}  // namespace app
