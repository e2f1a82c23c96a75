#pragma once

#include "app/workspace/documents.h"
#include "app/workspace/job_queue.h"
#include "app/workspace/selection.h"
#include "app/workspace/time_axis.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// What the window shows next. While another A or B gets its views, the window goes on showing the
/// old pair; then everything changes in one frame, and no panel is empty in between.
namespace app {

/// A and B as the window may show them next, with the traces that are then open.
struct Pair {
    DocumentPtr a;
    DocumentPtr b;  // null: A alone
    /// The trial that is then open (Documents::trial); null: none. Empty: as it is.
    std::optional<DocumentPtr> trial = {};
};

struct Scene {
    Pair pair;
    TimeAxis time;
    bool is_aligned = false;  // `time` is that of the pair
    bool is_made = false;     // all views were made when it was last looked at
    bool is_near = false;     // it is one switch away from what is shown
    int rounds = 0;           // how often views were made
    // what the requests of the slots borrow from
    Selection selection;
    std::vector<DocumentPtr> documents;
};

/// Makes what scenes lack, on a thread of its own.
class SceneMaker {
public:
    using Keep = std::function<void()>;  // runs on the frame thread
    using Make = std::function<Keep()>;  // runs on any thread

    ~SceneMaker() { queue_.cancel(); }

    void start(std::vector<Make> makes) {
        queue_.start("Drawing the traces", [makes = std::move(makes)](const auto& report) {
            std::vector<Keep> keeps;
            for (const Make& make : makes) {
                if (report(0)) keeps.push_back(make());
            }
            return models::Result<std::vector<Keep>>(std::move(keeps));
        });
    }
    /// Keeps what was made.
    void update() {
        for (const auto& result : queue_.take()) {
            if (!result) continue;  // it threw: the slots will say so themselves
            for (const Keep& keep : *result) keep();
        }
    }
    void cancel() {
        queue_.cancel();
        queue_.take();
    }
    bool busy() const { return queue_.busy(); }

private:
    JobQueue<std::vector<Keep>> queue_{Waiting::kDrop};
};

/// How to find the time axis of a scene.
inline SceneMaker::Make align_scene(const std::shared_ptr<Scene>& scene) {
    return [scene, time = scene->time, selection = scene->selection]() mutable -> SceneMaker::Keep {
        time.align(selection);
        return [scene, time] {
            scene->time = time;
            scene->is_aligned = true;
        };
    };
}

}  // namespace app
