#pragma once

#include <mutex>
#include <shared_mutex>

namespace models {

/// Whom a library's callbacks reach, on whatever threads it calls them. A callback that cannot be
/// taken back, or whose last call may still run on another thread, outlives what it serves.
template <typename Target>
class CallbackTarget {
public:
    /// Returns when no callback uses the former target any more: it may be destroyed then. Not to
    /// be called from within `with`.
    void set(Target* target) {
        const std::unique_lock lock(mutex_);
        target_ = target;
    }

    /// use(target), if there is one. Not to be nested on one thread: a `set` that waits between the
    /// two would wait for ever.
    template <typename Use>
    void with(const Use& use) {
        const std::shared_lock lock(mutex_);
        if (target_ != nullptr) use(*target_);
    }

private:
    std::shared_mutex mutex_;
    Target* target_ = nullptr;
};

}  // namespace models
