#pragma once

#include <ATen/autocast_mode.h>

#include <optional>

namespace models {

/// Autocast to `dtype` on `device` for the lifetime of the object, as `with torch.autocast(...)`;
/// none: autocast stays as it is.
class AutocastScope {
public:
    AutocastScope(at::DeviceType device, std::optional<at::ScalarType> dtype)
        : device_(device), active_(dtype.has_value()) {
        if (!active_) return;
        was_enabled_ = at::autocast::is_autocast_enabled(device_);
        old_dtype_ = at::autocast::get_autocast_dtype(device_);
        at::autocast::set_autocast_dtype(device_, *dtype);
        at::autocast::set_autocast_enabled(device_, true);
        at::autocast::increment_nesting();
    }
    ~AutocastScope() {
        if (!active_) return;
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(device_, was_enabled_);
        at::autocast::set_autocast_dtype(device_, old_dtype_);
    }
    AutocastScope(const AutocastScope&) = delete;
    AutocastScope& operator=(const AutocastScope&) = delete;

    /// What autocast computes in now; none when it is off.
    static std::optional<at::ScalarType> current(at::DeviceType device) {
        if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
        return at::autocast::get_autocast_dtype(device);
    }

private:
    at::DeviceType device_;
    bool active_;
    bool was_enabled_ = false;
    at::ScalarType old_dtype_ = at::kFloat;
};

}  // namespace models
