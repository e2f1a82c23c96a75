#pragma once

#include "profiler/trace/trace.h"

#include <functional>
#include <string>

/// What compiled code allocates, as the program's author wrote it.
///
///     train.py:40 <module>
///     .../cx3...py:812 call                    buf7 = empty_strided_cuda(...)
///     model.py:31 forward                      added: the line that buf7 holds the value of
///
/// app/python/temposcope/_compiled.py writes the places of a file of compiled code beside it:
///     {"lines": {"812": ["h.0.mlp", "gelu", "/home/me/model.py", 31, "forward"]}}
namespace profiler {

class StackRows;

/// Adds the program's line to each stack that ends in compiled code, and names the storages that
/// nobody has named after module and op: "h.0.mlp.gelu". `add_module` adds the row of a module's
/// path, if there is none. A file without places, or with damaged ones, changes nothing.
void name_compiled(Trace& trace, StackRows& rows,
                   const std::function<void(const std::string& path)>& add_module);

}  // namespace profiler
