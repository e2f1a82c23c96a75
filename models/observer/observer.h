#pragma once

#include <string>
#include <string_view>

namespace at {
class Tensor;
}

/// How model code tells whoever watches (the capture) what it is doing: which module runs, what a
/// tensor is called. Without an observer every call is a lock that nobody waits for.
namespace models {

class Observer {
public:
    virtual ~Observer() = default;
    /// `tensor` is the "query", the "attention_probs", ... of the current scope.
    virtual void on_tensor_named(const at::Tensor& tensor, std::string_view name) = 0;
    /// Something a reader of the trace should know, e.g. that a LayerNorm keeps another tensor.
    virtual void on_note(std::string_view code, std::string_view sentence) = 0;
    /// A module begins or ends on this thread; they nest. `path` is the whole path.
    virtual void on_module_begin(std::string_view /*path*/) noexcept {}
    virtual void on_module_end() noexcept {}
};

/// Sets the process's observer; null: none. Then the one before hears nothing any more, on no
/// thread.
void set_observer(Observer* observer);

void name_tensor(const at::Tensor& tensor, std::string_view name);
void note(std::string_view code, std::string_view sentence);

/// Enters a module for the lifetime of the object. Paths join with dots:
/// Scope("encoder.layer.3") then Scope("attention.self") is encoder.layer.3.attention.self.
class ModuleScope {
public:
    explicit ModuleScope(std::string_view name);
    ~ModuleScope();
    ModuleScope(const ModuleScope&) = delete;
    ModuleScope& operator=(const ModuleScope&) = delete;

    /// Path of the module that runs on this thread; empty outside of any.
    static const std::string& current();

private:
    std::size_t parent_length_;
};

/// Enters a module by its whole path, whatever runs around it: a layer that a checkpoint runs
/// again in backward is the same layer.
class RootModuleScope {
public:
    explicit RootModuleScope(std::string_view path);
    ~RootModuleScope();
    RootModuleScope(const RootModuleScope&) = delete;
    RootModuleScope& operator=(const RootModuleScope&) = delete;

private:
    std::string outer_;
};

}  // namespace models
