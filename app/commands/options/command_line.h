#pragma once

#include "app/commands/console/outcome.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// The command line: commands and their options. Only command_line.cpp includes the library that
/// parses, because every file that includes it compiles 10 s longer.
namespace app {

class Output;
struct RecipeList;

/// Where the value of an option goes. Its type says which values are accepted: none (bool), whole
/// numbers, decimal numbers, one text, several texts, recipes.
using OptionValue = std::variant<bool*, int64_t*, std::optional<int64_t>*, std::optional<double>*,
                                 std::string*, std::vector<std::string>*, RecipeList*>;

struct Option {
    std::string names;              // "--seq" or "-o,--output"; an argument without dashes: "FILE"
    std::string help;               // a default value is added
    std::string value_name = {};    // what help calls the value: "N"
    std::string group = "Options";  // the heading of the option on the help page
    bool is_required = false;
    bool may_be_empty = false;              // else "" is refused, as scripts pass it by mistake
    std::vector<std::string> choices = {};  // no others are accepted; empty: any value
    std::string needs = {};                 // the option without which this one has no meaning
    int max_values = 1 << 20;               // of an argument that takes several texts
    std::string if_alone = {};  // its value where none follows it; empty: one must follow
};

/// A set of modes of a command: one bit for each mode.
using Modes = uint32_t;
inline constexpr Modes kAllModes = ~0U;

/// One of several things that a command does. Each option says in which modes it has a meaning;
/// what may not be combined follows from that.
struct Mode {
    using Sentence = std::function<std::string(const std::string& option)>;

    Modes bit = 1;
    std::function<Modes()> bit_by_value = {};  // in place of `bit`: it depends on values of options
    std::string chosen_by;                     // an option; empty: no other mode was chosen
    Sentence refuse = {};                      // on an option that has no meaning in this mode
    std::vector<std::pair<std::string, Sentence>> needs = {};  // options, and what their lack means
    std::function<Outcome(Output&)> run;
};

/// The same sentence on each option, whose name replaces {}.
Mode::Sentence sentence(const char* text);

class Command {
public:
    explicit Command(CLI::App& parser) : parser_(&parser) {}

    /// `value` holds the default, and must live until the command has run. `modes`: in which the
    /// option has a meaning.
    void add(const Option& option, OptionValue value, Modes modes = kAllModes);
    /// The command takes what stands after `--`, word by word as it is: another program's command
    /// line.
    void add_program(std::vector<std::string>* words) { program_ = words; }
    /// Another name of the command.
    void also_called(const std::string& name);
    /// Text after the options on the help page.
    void footer(std::string text);
    /// What the command does. Adds --json, which `Output::json()` tells.
    void on_run(std::function<Outcome(Output&)> run) {
        on_run({Mode{.bit = kAllModes, .run = std::move(run)}});
    }
    /// The first mode whose option is given runs.
    void on_run(std::vector<Mode> modes);

    /// Whether the option was given, by one of its names.
    bool is_given(const std::string& name) const;
    /// The modes in which the option has a meaning, by the last of its names.
    Modes modes_of(const std::string& name) const;

private:
    friend class CommandLine;
    struct AddedOption {
        std::string name;  // the last of its names: "--output"
        Modes modes;
        const CLI::Option* parsed;
    };
    Outcome run(Output& output) const;

    CLI::App* parser_;
    bool json_ = false;
    std::vector<std::string>* program_ = nullptr;  // null: the command takes none
    std::vector<AddedOption> options_;
    std::vector<Mode> modes_;
};

class CommandLine {
public:
    CommandLine(const std::string& name, const std::string& version, const std::string& description,
                const std::string& footer);
    ~CommandLine();

    Command& add_command(const std::string& name, const std::string& summary);

    /// False: --help or --version was given, and `answer()` is the text to write.
    /// Errors: one sentence on what is wrong, with what was probably meant.
    models::Result<bool> parse(int argc, char** argv);

    const std::string& answer() const { return answer_; }

    bool has_command() const { return chosen_ != nullptr; }
    bool json() const;
    Outcome run(Output& output) const { return chosen_->run(output); }

private:
    int take_program(int argc, char** argv);

    std::unique_ptr<CLI::App> parser_;
    std::deque<Command> commands_;
    const Command* chosen_ = nullptr;
    std::string answer_;
};

}  // namespace app
