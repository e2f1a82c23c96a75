#pragma once

#include <array>
#include <csignal>

namespace app {

/// From now on a SIGINT, SIGTERM or SIGHUP that nothing cancels removes unfinished files before it
/// ends the program.
void clean_up_on_signals();

/// While it lives, the first SIGINT, SIGTERM or SIGHUP cancels `work` instead of ending the
/// program. One that comes a second later ends the program, and the workers with it. A signal that
/// is ignored stays ignored, as nohup wants it. Only one CancelOnInterrupt may live at a time.
class CancelOnInterrupt {
public:
    /// `work.cancel()` must be safe to call from a signal handler.
    template <typename Work>
    explicit CancelOnInterrupt(Work& work)
        : CancelOnInterrupt(&work,
                            [](void* cancelled) { static_cast<Work*>(cancelled)->cancel(); }) {}
    ~CancelOnInterrupt();
    CancelOnInterrupt(const CancelOnInterrupt&) = delete;
    CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

private:
    CancelOnInterrupt(void* work, void (*cancel)(void*));

    static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kSignals.size()> old_{};
};

}  // namespace app
