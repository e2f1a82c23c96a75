#pragma once

#include <mutex>
#include <shared_mutex>

namespace models {

/// The object that receives a library's callbacks, on any thread. Use it for a callback that cannot
/// be unregistered, or that may still run on another thread: the CallbackTarget then outlives the
/// object.
template <typename Target>
class CallbackTarget {
public:
    /// Returns when no callback uses the former target any more, so that it may be destroyed. Must
    /// not be called inside `with`.
    void set(Target* target) {
        const std::unique_lock lock(mutex_);
        target_ = target;
    }

    /// Calls use(target) if there is a target. Must not be nested on one thread: a `set` that waits
    /// between the two calls would wait for ever.
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
