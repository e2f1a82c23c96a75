#pragma once

#include <ATen/autocast_mode.h>

#include <optional>

namespace models {

/// Autocast to `dtype` on `device` for the lifetime of the object, as `with torch.autocast(...)`.
/// With nullopt, autocast stays as it is.
class AutocastScope {
public:
    AutocastScope(at::DeviceType device, std::optional<at::ScalarType> dtype)
        : device_(device), active_(dtype.has_value()) {
        if (!active_) return;
        outer_ = current(device_);
        outer_dtype_ = at::autocast::get_autocast_dtype(device_);
        set(dtype);
        at::autocast::increment_nesting();
    }
    ~AutocastScope() {
        if (!active_) return;
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        set(outer_);
        at::autocast::set_autocast_dtype(device_, outer_dtype_);
    }
    AutocastScope(const AutocastScope&) = delete;
    AutocastScope& operator=(const AutocastScope&) = delete;

    /// The dtype that autocast uses now; nullopt if it is off.
    static std::optional<at::ScalarType> current(at::DeviceType device) {
        if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
        return at::autocast::get_autocast_dtype(device);
    }

private:
    void set(std::optional<at::ScalarType> dtype) {
        if (dtype) at::autocast::set_autocast_dtype(device_, *dtype);
        at::autocast::set_autocast_enabled(device_, dtype.has_value());
    }

    at::DeviceType device_;
    bool active_;
    std::optional<at::ScalarType> outer_;      // state outside this scope
    at::ScalarType outer_dtype_ = at::kFloat;  // torch keeps one while autocast is off, too
};

}  // namespace models
