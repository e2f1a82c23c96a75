#pragma once

#include <CLI/CLI.hpp>

#include <string>

/// How `--help` looks, and what is said about a command line that cannot be understood.
namespace app {

/// Usage with <required> and [optional] parts, descriptions wrapped to the width of a page.
class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter();
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_option(const CLI::Option* option, bool is_positional) const override;
    std::string make_subcommand(const CLI::App* command) const override;
};

/// "  name        summary ..." for each, to stand in a footer.
std::string list_recipes();
/// `name` in a column of its own and `text` wrapped beside it.
std::string two_columns(const std::string& name, const std::string& text, std::size_t name_width);
/// `text` wrapped to the page, indented.
std::string wrapped(const std::string& text);

/// One sentence, with what was probably meant and where help is.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace app
