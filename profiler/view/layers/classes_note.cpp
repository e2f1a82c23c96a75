#include "profiler/view/layers/classes_note.h"

#include "profiler/analysis/step/describe_run.h"

namespace profiler {

std::string_view classes_note(const Trace& trace) {
    return has_inferred_categories(trace) ? kClassesInferred : std::string_view();
}

}  // namespace profiler
