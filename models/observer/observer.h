#pragma once

#include <string>
#include <string_view>

namespace at {
class Tensor;
}

/// Model code reports here what it does: which module runs, and the name of a tensor. The capture
/// observes it. Without an observer, a call costs one uncontended lock.
namespace models {

class Observer {
public:
    virtual ~Observer() = default;
    /// `tensor` is the "query", the "attention_probs", ... of the current module.
    virtual void on_tensor_named(const at::Tensor& tensor, std::string_view name) = 0;
    /// A fact for the reader of the trace, for example that a LayerNorm saves another tensor.
    virtual void on_note(std::string_view code, std::string_view sentence) = 0;
    /// A module begins or ends on this thread. Modules nest; `path` is the whole path.
    virtual void on_module_begin(std::string_view /*path*/) noexcept {}
    virtual void on_module_end() noexcept {}
};

/// Sets the process's observer, or none with nullptr. After the call, the former observer gets no
/// more calls on any thread.
void set_observer(Observer* observer);

void name_tensor(const at::Tensor& tensor, std::string_view name);
void note(std::string_view code, std::string_view sentence);

/// Enters a module for the lifetime of the object. Nested names join with dots:
/// "attention.self" inside "encoder.layer.3" is encoder.layer.3.attention.self.
class ModuleScope {
public:
    explicit ModuleScope(std::string_view name);
    ~ModuleScope();
    ModuleScope(const ModuleScope&) = delete;
    ModuleScope& operator=(const ModuleScope&) = delete;

    /// Path of the module that runs on this thread; empty if none does.
    static const std::string& current();

private:
    std::size_t parent_length_;
};

/// Enters a module by its whole path, regardless of the modules around it: a layer that a
/// checkpoint runs again in backward keeps its path.
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
