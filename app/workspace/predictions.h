#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/document.h"
#include "app/workspace/job_queue.h"

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Steps that the user asks for in the window: predicted on a background thread, and kept.
namespace app {

/// A step on a GPU that is not here. The recipe is that of the workload.
struct StepToPredict {
    models::Workload workload;
    std::string gpu;  // its id

    friend bool operator==(const StepToPredict&, const StepToPredict&) = default;
};

class Predictions {
public:
    explicit Predictions(Predictor& predictor) : predictor_(predictor) {}
    ~Predictions() { queue_.cancel(); }

    /// The step, if it was predicted before; else null, and `want` has it predicted.
    DocumentPtr find(const StepToPredict& step) const;
    /// Returns false if it is wanted already.
    bool want(const StepToPredict& step);
    /// The user waits for nothing any more.
    void wait_no_longer() { wanted_.clear(); }
    /// Predicts a step that may be wanted next. Does nothing if it is known, or was tried.
    void want_ahead(const StepToPredict& step);

    /// Takes finished predictions. The sentences say what could not be predicted, except ahead.
    std::vector<std::string> update();
    /// A step that the user waits for is being predicted.
    bool busy() const { return !wanted_.empty(); }
    /// How many steps were predicted or refused so far.
    size_t num_answers() const { return num_answers_; }
    /// Nothing is being predicted, not even ahead.
    bool is_idle() const { return running_.empty(); }

private:
    struct Predicted {
        StepToPredict step;
        models::Result<DocumentPtr> document;
    };
    void start(const StepToPredict& step);

    Predictor& predictor_;
    std::list<Predicted> known_;         // the newest first; with the refused ones
    std::vector<StepToPredict> wanted_;  // by the user, not yet known
    std::vector<StepToPredict> running_;
    size_t num_answers_ = 0;
    JobQueue<Predicted> queue_{Waiting::kKeep};
};

}  // namespace app
