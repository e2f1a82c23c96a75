#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

/// Progress of a command on standard error: a bar that is drawn over itself on a terminal, lines
/// elsewhere (a log then has at most one line every few seconds).
namespace app {

class Progress {
public:
    /// Work that takes less than `delay` shows none.
    explicit Progress(std::chrono::milliseconds delay = {});
    ~Progress();  // clears the bar
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    bool is_terminal() const { return is_terminal_; }

    /// `fraction` in [0, 1]; negative when the end is not known.
    void update(double fraction, std::string_view text);

private:
    void clear();

    const std::chrono::steady_clock::time_point begin_;  // of what is shown
    bool is_terminal_ = false;
    bool bar_shown_ = false;
    std::string last_text_;
    std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace app
