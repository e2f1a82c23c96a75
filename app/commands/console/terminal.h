#pragma once

#include "models/config/result.h"
#include "profiler/tables/columns.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

/// What a command writes on standard output, and how it looks there.
///
/// Names come from files and command lines. What is written passes through
/// profiler/trace/printable.h here, so no caller escapes them.
namespace app {

enum class Style : uint8_t { kPlain, kBold, kDim, kGood, kBad, kWarning };

/// Collects the output of a command and writes it in one piece at its end, so that a command that
/// fails has written nothing.
class Output {
public:
    /// `json`: the command was asked for JSON; text written is then dropped.
    explicit Output(bool json);

    bool json() const { return json_; }
    /// The text in this style, as a part of a `line`. Plain unless this is a terminal that shows
    /// colours, or if NO_COLOR is set.
    std::string styled(std::string_view text, Style style) const;

    /// One line. Line ends inside the text are escaped.
    void line(std::string_view text = {});
    void heading(std::string_view text);
    /// Columns aligned, numbers to the right, titles dim; empty and all-dash columns are left out.
    void table(const profiler::TextTable& table);
    void document(const nlohmann::json& document);

    models::Result<void> flush();

private:
    std::string shown(std::string_view text) const;

    std::string text_;
    bool json_ = false;
    bool colour_ = false;
};

/// Text for standard output, as it is.
/// Errors: it is closed or full. A reader that has seen enough (a pipe to `head`) is none.
models::Result<void> write_output(std::string_view text);

/// Columns on a terminal: code points, not bytes.
std::size_t display_width(std::string_view text);

/// Standard error, as it is. Nobody listening there is no failure.
void write_error(std::string_view text);

/// One sentence on standard error: "temposcope: ...".
void print_error(std::string_view sentence);

/// `text` as one word of a shell: in quotes where the shell would not take it as it is.
std::string shell_word(std::string_view text);

/// The last line of a command: "Next: temposcope info train.tscope --peak". Names of files in the
/// arguments are shell words.
std::string next_line(std::string_view arguments);

}  // namespace app
