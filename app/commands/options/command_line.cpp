#include "app/commands/options/command_line.h"

#include "app/commands/options/help.h"
#include "app/commands/options/values.h"
#include "app/user/workload_jobs.h"
#include "models/config/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <type_traits>

namespace app {
namespace {

/// How a help page looks: usage with the required parts, descriptions wrapped to the page.
class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter() { label("OPTIONS", "options"); }

    std::string make_usage(const CLI::App* command, std::string name) const override {
        std::string usage = "\nUsage: " + name;
        if (!command->get_subcommands([](const CLI::App*) { return true; }).empty()) {
            return usage + " [COMMAND] [options]\n";
        }
        for (const CLI::Option* option : command->get_options()) {
            if (option->get_positional()) {
                usage += " " + option->get_name(true);
                if (option->get_items_expected_max() > 2) usage += "...";
            } else if (option->get_required()) {
                usage += fmt::format(" {}{}", option->get_name(), value_name(*option));
            }
        }
        return usage + " [options]\n";
    }

    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        const std::string name = is_positional
                                     ? option->get_name(true)
                                     : option->get_name(false, true) + value_name(*option);
        std::string text = option->get_description();
        if (!option->get_default_str().empty()) {
            text += fmt::format(" (default {})", option->get_default_str());
        }
        return two_columns(name, text, 26);
    }

    std::string make_subcommand(const CLI::App* command) const override {
        return two_columns(command->get_name(), command->get_description(), 12);
    }

private:
    static std::string value_name(const CLI::Option& option) {
        return option.get_items_expected_max() == 0 ? "" : " " + option.get_type_name();
    }
};

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
    throw CLI::ValidationError(fmt::format("{} {}", name, problem),
                               CLI::ExitCodes::ValidationError);
}

/// A value in the type of the variable that it is for.
void assign(int64_t& number, const std::string& name, const std::string& text) {
    const auto parsed = parse_whole_number(text);
    if (!parsed) refuse(name, fmt::format("takes a whole number of 64 bits, not '{}'", text));
    number = *parsed;
}
void assign(double& number, const std::string& name, const std::string& text) {
    const auto parsed = parse_decimal_number(text);
    if (!parsed) refuse(name, fmt::format("takes a number, not '{}'", text));
    number = *parsed;
}
void assign(std::string& target, const std::string&, const std::string& text) { target = text; }
void assign(RecipeList& list, const std::string&, const std::string& text) {
    list = recipes_of(text);
}
template <typename T>
void assign(std::optional<T>& target, const std::string& name, const std::string& text) {
    assign(target.emplace(), name, text);
}

void check(const Option& option, const std::string& name, const std::string& text) {
    if (text.empty() && !option.may_be_empty) refuse(name, "is empty: give a value");
    if (text == "-" && name == "--output") refuse(name, "does not take - for a pipe: name a file");
    const auto& choices = option.choices;
    if (!choices.empty() && std::ranges::find(choices, text) == choices.end()) {
        refuse(name, fmt::format("takes one of {}, not '{}'", fmt::join(choices, ", "), text));
    }
}

/// CLI11 takes the word after an option for its value, whatever it is.
void check_is_value(const CLI::App& parser, const std::string& name, const std::string& word,
                    bool is_argument) {
    const bool is_option = word.starts_with('-') && parser.get_option_no_throw(word) != nullptr;
    if (is_option && !is_argument) {
        refuse(name, fmt::format("needs a value, and {} is an option", word));
    }
}

/// "--output" of "-o,--output".
std::string last_name(const Option& option) {
    return option.names.substr(option.names.rfind(',') + 1);
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& words) {
    std::vector<std::string> items;
    for (const std::string& word : words) {
        for (std::string& item : CLI::detail::split(word, ',')) items.push_back(std::move(item));
    }
    return items;
}

template <typename T>
std::string default_text(const T& value) {
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        return fmt::format("{}", fmt::join(value, ","));
    } else if constexpr (std::is_same_v<T, RecipeList>) {
        return default_text(value.names);
    } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::string>) {
        return fmt::format("{}", value);
    }
    return {};
}

template <typename T>
CLI::Option* add_option(CLI::App& parser, const Option& option, T& value) {
    const bool is_argument = !option.names.starts_with('-');
    const std::string name = last_name(option);
    constexpr bool kIsList = std::is_same_v<T, std::vector<std::string>>;
    const auto take = [&value, &parser, option, name, is_argument](CLI::results_t words) {
        for (const std::string& one : words) check_is_value(parser, name, one, is_argument);
        if constexpr (kIsList) {
            if (is_argument && static_cast<int>(words.size()) > option.max_values) {
                refuse(name, fmt::format("takes at most {} values", option.max_values));
            }
            value.clear();
            for (const std::string& one : is_argument ? words : split_at_commas(words)) {
                check(option, name, one);
                if (option.choices.empty()) {
                    value.push_back(one);
                } else {
                    append_once(value, one);  // one of a few: to name it twice asks for it once
                }
            }
        } else {
            if (words.size() > 1) refuse(name, "is given more than once");
            check(option, name, words.front());
            assign(value, name, words.front());
        }
        return true;
    };
    CLI::Option* added = parser.add_option(option.names, take, option.help);
    added->type_name(option.value_name);
    // What the library takes where an option stands alone.
    added->default_str(option.if_alone.empty() ? default_text(value) : option.if_alone);
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (kIsList && is_argument) added->expected(1, option.max_values)->allow_extra_args();
    if (!option.if_alone.empty()) added->expected(0, 1);
    return added;
}
CLI::Option* add_option(CLI::App& parser, const Option& option, bool& value) {
    return parser.add_flag(option.names, value, option.help);
}

/// ", did you mean --model", or nothing if no name is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
    const auto meant = models::misspelled_name(word, {names.begin(), names.end()});
    return meant ? fmt::format(", did you mean {}", *meant) : "";
}

std::vector<std::string> option_names(const CLI::App* command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

/// The words that no option took.
std::vector<std::string> extra_words(const CLI::App& program, const CLI::App* command) {
    return command != nullptr && !command->remaining().empty() ? command->remaining()
                                                               : program.remaining();
}

/// What is wrong with a word that no option took.
std::string about_extra_word(const CLI::App& program, const CLI::App* command, bool takes_program) {
    const std::vector<std::string> words = extra_words(program, command);
    const std::string word = words.empty() ? "" : words.front();
    if (word.starts_with("-")) {
        const CLI::App* owner = command != nullptr ? command : &program;
        return fmt::format("{} is not an option here{}", word,
                           suggestion(word, option_names(owner)));
    }
    if (command != nullptr) {
        return fmt::format("'{}' is one argument too many{}", word,
                           takes_program ? ": write -- before the program" : "");
    }
    std::error_code error;
    if (std::filesystem::exists(word, error)) {
        return fmt::format("'{}' is not a command: to open it, write temposcope open {}", word,
                           word);
    }
    std::vector<std::string> names;
    for (const CLI::App* one : program.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(one->get_name());
    }
    return fmt::format("'{}' is not a command{}", word, suggestion(word, names));
}

/// Errors of the library that are not ours from `refuse`, by their type. `takes_program`: whether
/// the command takes another program's command line.
models::Error explain(const CLI::App& program, const CLI::ParseError& error, bool takes_program) {
    const auto commands = program.get_subcommands();
    const CLI::App* command = commands.empty() ? nullptr : commands.front();
    std::string what = error.what();
    // A misspelled option is the reason why its own name is missing: it is named first.
    const bool lacks_option = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                              !extra_words(program, command).empty();
    if (lacks_option || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        what = about_extra_word(program, command, takes_program);
    } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        what = what.substr(0, what.find(':')) + " needs a value";  // "--seed: 1 required ..."
    } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
        // "Could not convert: --json = maybe": a flag, because we read the values of options.
        const auto name = what.find("--");
        what = what.substr(name, what.find(' ', name) - name) + " takes no value";
    }
    return {fmt::format("{}; see temposcope {}--help.", what,
                        command == nullptr ? "" : command->get_name() + " ")};
}

}  // namespace

Mode::Sentence sentence(const char* text) {
    return [text](const std::string& option) { return fmt::format(fmt::runtime(text), option); };
}

void Command::add(const Option& option, OptionValue value, Modes modes) {
    CLI::Option* added =
        std::visit([&](auto* target) { return add_option(*parser_, option, *target); }, value);
    added->required(option.is_required)->group(option.group);
    if (!option.needs.empty()) added->needs(parser_->get_option(option.needs));
    options_.push_back({last_name(option), modes, added});
}

void Command::also_called(const std::string& name) { parser_->alias(name); }

void Command::footer(std::string text) { parser_->footer(std::move(text)); }

void Command::on_run(std::vector<Mode> modes) {
    modes_ = std::move(modes);
    add({"--json", "one JSON document on standard output"}, &json_);
}

bool Command::is_given(const std::string& name) const {
    return parser_->get_option(name)->count() > 0;
}

Modes Command::modes_of(const std::string& name) const {
    return std::ranges::find(options_, name, &AddedOption::name)->modes;
}

Outcome Command::run(Output& output) const {
    const auto mode = std::ranges::find_if(
        modes_, [&](const Mode& one) { return one.chosen_by.empty() || is_given(one.chosen_by); });
    const Modes bit = mode->bit_by_value ? mode->bit_by_value() : mode->bit;
    for (const AddedOption& option : options_) {
        if (option.parsed->count() == 0 || (option.modes & bit) != 0) continue;
        return wrong_usage({mode->refuse(option.name)});
    }
    for (const auto& [option, lacks] : mode->needs) {
        if (!is_given(option)) return wrong_usage({lacks(option)});
    }
    return mode->run(output);
}

CommandLine::CommandLine(const std::string& name, const std::string& version,
                         const std::string& description, const std::string& footer)
    : parser_(std::make_unique<CLI::App>(description, name)) {
    parser_->set_version_flag("--version", version, "version of the program");
    parser_->set_help_flag("-h,--help", "this text");
    parser_->require_subcommand(0, 1);
    parser_->formatter(std::make_shared<HelpFormatter>());
    parser_->footer(footer);
}

CommandLine::~CommandLine() = default;

Command& CommandLine::add_command(const std::string& name, const std::string& summary) {
    return commands_.emplace_back(*parser_->add_subcommand(name, summary));
}

models::Result<bool> CommandLine::parse(int argc, char** argv) {
    std::vector<char*> words(argv, argv + argc);
    std::string help = "--help";
    if (argc >= 2 && std::string_view(argv[1]) == "help") {  // `help capture`: `capture --help`
        words.erase(words.begin() + 1);
        // A word that is no command is reported, instead of help about all.
        const bool is_command = argc > 2 && std::ranges::any_of(commands_, [&](const Command& one) {
                                    return one.parser_->check_name(argv[2]);
                                });
        if (argc == 2 || is_command) words.push_back(help.data());
    }
    try {
        parser_->parse(take_program(static_cast<int>(words.size()), words.data()), words.data());
    } catch (const CLI::Success& answered) {
        std::ostringstream text;
        parser_->exit(answered, text, text);
        answer_ = std::move(text).str();
        return false;
    } catch (const CLI::ParseError& error) {
        const bool takes_program = std::ranges::any_of(commands_, [](const Command& command) {
            return command.parser_->parsed() && command.program_ != nullptr;
        });
        return tl::unexpected(explain(*parser_, error, takes_program));
    }
    for (const Command& command : commands_) {
        if (command.parser_->parsed()) chosen_ = &command;
    }
    return true;
}

/// The words after `--` never reach the parser, which would read some of them as lists. Returns how
/// many are left for it.
int CommandLine::take_program(int argc, char** argv) {
    for (const Command& command : commands_) {
        if (command.program_ == nullptr || argc < 2 || command.parser_->get_name() != argv[1]) {
            continue;
        }
        char** const end = argv + argc;
        char** const dashes = std::find(argv, end, std::string_view("--"));
        if (dashes == end) continue;
        command.program_->assign(dashes + 1, end);
        return static_cast<int>(dashes - argv);
    }
    return argc;
}

bool CommandLine::json() const { return chosen_ != nullptr && chosen_->json_; }

}  // namespace app
