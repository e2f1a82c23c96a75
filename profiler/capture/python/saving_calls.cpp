#include "profiler/capture/python/saving_calls.h"

#include <map>
#include <utility>

namespace profiler {

std::vector<SavingCall> saving_calls(const Trace& trace) {
    const auto name_of = [&](Id<Op> op) {
        return std::string(trace.text(trace.ops.get<&Op::name>(op)));
    };
    std::map<Id<Op>, std::set<std::string>> savers;  // by the outermost op
    for (const Id<Op> saver : trace.saves.column<&Save::op>()) {
        if (!saver.valid()) continue;
        Id<Op> outermost = saver;
        for (Id<Op> op = saver; op.valid(); op = trace.ops.get<&Op::parent>(op)) outermost = op;
        savers[outermost].insert(name_of(saver));
    }
    std::vector<SavingCall> calls;
    for (auto& [op, names] : savers) {
        const Id<ModulePath> module = trace.ops.get<&Op::module_path>(op);
        const StringId path =
            module.valid() ? trace.module_paths.get<&ModulePath::path>(module) : StringId();
        calls.push_back({.op = name_of(op),
                         .module_path = std::string(trace.text(path)),
                         .savers = std::move(names)});
    }
    return calls;
}

}  // namespace profiler
