#include "app/commands/options/help.h"

#include "models/config/model_config.h"
#include "models/config/names.h"
#include "models/config/recipe.h"
#include "models/config/switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace app {
namespace {

constexpr std::size_t kPageWidth = 100;
constexpr std::size_t kNameWidth = 26;

/// " NAME" for an option that takes a value. The library's type name lists the allowed values too,
/// after a colon; the description says them.
std::string value_name(const CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return {};
    const std::string type = option.get_type_name();
    return " " + type.substr(0, type.find(':'));
}

/// What is wrong with a word that no option took.
std::string explain_extra(const CLI::App& program, const std::string& word) {
    std::error_code error;
    if (word.starts_with("-")) return fmt::format("{} is not an option here", word);
    if (!program.get_subcommands().empty())
        return fmt::format("'{}' is one argument too many", word);
    if (std::filesystem::exists(word, error)) {
        return fmt::format("'{}' is not a command: to open it, write temposcope open {}", word,
                           word);
    }
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(command->get_name());
    }
    const auto nearest = models::nearest_names(word, {names.begin(), names.end()});
    if (nearest.empty()) return fmt::format("'{}' is not a command", word);
    return fmt::format("'{}' is not a command, did you mean {}", word, nearest.front());
}

/// The words that no option took, of the program or of the command that was named.
std::vector<std::string> extra_words(const CLI::App& program) {
    for (const CLI::App* command : program.get_subcommands()) {
        if (auto words = command->remaining(); !words.empty()) return words;
    }
    return program.remaining();
}

/// The library's sentences in the words of the rest of the program.
std::string reword(std::string text) {
    const auto replace = [&text](std::string_view from, std::string_view to) {
        if (const auto at = text.find(from); at != std::string::npos) {
            text.replace(at, std::string::npos, to);
        }
    };
    replace(": At Most 1 required but received", " is given more than once");
    replace(": 1 required ", " needs a value");
    if (const auto at = text.find(" not in {"); at != std::string::npos) {
        text.replace(at, 9, " is none of ");
        std::erase(text, '}');
        for (std::size_t i = at; i < text.size(); ++i) {
            if (text[i] == ',') text.insert(++i, 1, ' ');
        }
    }
    return text;
}

}  // namespace

HelpFormatter::HelpFormatter() { label("OPTIONS", "options"); }

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
    std::string usage = "\nUsage: " + name;
    const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
    if (has_commands) return usage + " [COMMAND] [options]\n";
    for (const CLI::Option* option : app->get_options()) {
        if (option->get_positional()) {
            usage += " " + option->get_name(true);
            if (option->get_items_expected_max() > 2) usage += "...";
        } else if (option->get_required()) {
            usage += fmt::format(" {}{}", option->get_name(), value_name(*option));
        }
    }
    return usage + " [options]\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
    const std::string name = is_positional ? option->get_name(true)
                                           : option->get_name(false, true) + value_name(*option);
    std::string text = option->get_description();
    if (!option->get_default_str().empty())
        text += fmt::format(" (default {})", option->get_default_str());
    return two_columns(name, text, kNameWidth);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
    return two_columns(command->get_name(), command->get_description(), 12);
}

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
        if (column + word.size() > kPageWidth) {
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

/// "original, in_place": the values of a switch that can be chosen, that of `original` first.
std::string list_values(const auto& table) {
    const models::SwitchValue& first = table.chosen(models::Recipe{});
    std::string text(first.name);
    for (const auto& row : table.rows) {
        if (&row.is == &first || row.is.runs_on == models::RunsOn::kNowhere) continue;
        text += fmt::format(", {}", row.is.name);
    }
    return text;
}

std::string list_recipes() {
    std::string text = "Recipes:\n";
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        text += two_columns(std::string(preset.name), std::string(preset.summary), 36);
    }
    text +=
        "\nOr by hand, alone or after a preset: gelu=in_place,masks=bit or tempo,masks=bit. "
        "Switches,\n"
        "the value of original first:\n";
    models::for_each_switch([&](const auto& table) {
        text += two_columns(std::string(table.name), list_values(table), 36);
    });
    text +=
        "\nLayers of their own follow after '+', with '@': original+tempo@0-11, "
        "tempo+masks=bit@3.\n";
    return text;
}

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
    std::string what = error.what();
    const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    if (const auto words = extra_words(program); is_extra && !words.empty()) {
        what = explain_extra(program, words.front());
    }
    what = reword(std::move(what));
    while (!what.empty() && (what.back() == '.' || what.back() == '\n')) what.pop_back();
    std::replace(what.begin(), what.end(), '\n', ' ');
    const auto commands = program.get_subcommands();
    return fmt::format("{}; see temposcope {}--help.", what,
                       commands.empty() ? "" : commands.front()->get_name() + " ");
}

}  // namespace app
