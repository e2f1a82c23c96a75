#include "app/commands/console/progress.h"

#include "app/commands/console/terminal.h"
#include "profiler/trace/printable.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace app {
namespace {

using namespace std::chrono_literals;

constexpr auto kBarInterval = 50ms;
constexpr auto kLineInterval = 3s;
constexpr int kBarWidth = 24;
constexpr int kNarrowest = 40;

int terminal_width() {
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest;
    return known ? size.ws_col : 80;
}

std::string make_bar(double fraction) {
    if (fraction < 0) return {};
    const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
    std::string bar = "[";
    for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? '=' : i == filled ? '>' : ' ';
    return bar + fmt::format("] {:3.0f} %  ", std::clamp(fraction, 0.0, 1.0) * 100);
}

}  // namespace

Progress::Progress(std::chrono::milliseconds delay)
    : begin_(std::chrono::steady_clock::now() + delay), is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::update(double fraction, std::string_view raw_text) {
    const auto now = std::chrono::steady_clock::now();
    if (now < begin_) return;
    const std::string text = profiler::printable(raw_text);
    const bool is_new = text != last_text_;
    if (last_ && now - *last_ < (is_terminal_ ? kBarInterval : kLineInterval)) return;
    if (!is_terminal_ && !is_new) return;
    last_ = now;
    last_text_ = text;
    if (!is_terminal_) {
        write_error(fmt::format("{}\n", text));
        return;
    }
    const std::string bar = make_bar(fraction);
    // ASCII up to here, so cutting bytes cannot split a character of the bar.
    const auto room = static_cast<std::size_t>(terminal_width() - 1) - bar.size();
    write_error(fmt::format("\r\x1b[K{}{}", bar, std::string_view(text).substr(0, room)));
    bar_shown_ = true;
}

void Progress::clear() {
    if (!bar_shown_) return;
    write_error("\r\x1b[K");
    bar_shown_ = false;
}

}  // namespace app
