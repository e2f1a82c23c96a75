#include "models/observer/observer.h"

#include "models/observer/callback_target.h"

#include <utility>

namespace models {
namespace {

CallbackTarget<Observer> active;
thread_local std::string scope_path;

void begin_module() {
    active.with([](Observer& observer) { observer.on_module_begin(scope_path); });
}
void end_module() {
    active.with([](Observer& observer) { observer.on_module_end(); });
}

}  // namespace

void set_observer(Observer* observer) { active.set(observer); }

void name_tensor(const at::Tensor& tensor, std::string_view name) {
    active.with([&](Observer& observer) { observer.on_tensor_named(tensor, name); });
}

void note(std::string_view code, std::string_view sentence) {
    active.with([&](Observer& observer) { observer.on_note(code, sentence); });
}

ModuleScope::ModuleScope(std::string_view name) : parent_length_(scope_path.size()) {
    if (!scope_path.empty()) scope_path += '.';
    scope_path += name;
    begin_module();
}

ModuleScope::~ModuleScope() {
    end_module();
    scope_path.resize(parent_length_);
}

RootModuleScope::RootModuleScope(std::string_view path)
    : outer_(std::exchange(scope_path, std::string(path))) {
    begin_module();
}

RootModuleScope::~RootModuleScope() {
    end_module();
    scope_path = std::move(outer_);
}

const std::string& ModuleScope::current() { return scope_path; }

}  // namespace models
