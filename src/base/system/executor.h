// Executor: where parallel work runs. Sparkle's own ThreadPool is one; a program may hand in a pool of its own.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sparkle {

class Executor {
 public:
  using Work = void (*)(void* context, int task, int worker);
  virtual ~Executor() = default;
  // How many workers run at once, the caller included; at least 1.
  virtual int width() const = 0;
  // Calls work(context, task, worker) once for each task in [0, tasks), worker in [0, width()), and returns when all are
  // done. The work does not throw and starts no work of its own on this executor.
  virtual void run(int tasks, Work work, void* context) = 0;
};

// Runs everything in the caller.
class InlineExecutor final : public Executor {
 public:
  int width() const override { return 1; }
  void run(int tasks, Work work, void* context) override {
    for (int task = 0; task < tasks; ++task) work(context, task, 0);
  }
};

// parallel_for(executor, tasks, [&](int task, int worker) { ... })
template <class Work>
void parallel_for(Executor& executor, int tasks, Work&& work) {
  using Body = std::remove_reference_t<Work>;
  if (tasks <= 0) return;
  if (tasks == 1) return work(0, 0);
  executor.run(
      tasks, [](void* context, int task, int worker) { (*static_cast<Body*>(context))(task, worker); },
      const_cast<std::remove_const_t<Body>*>(&work));
}

// Items [begin, end) of one of `tasks` tasks that share `items` of them as evenly as whole items go.
struct ItemRange {
  int64_t begin, end;
};
inline ItemRange task_range(int64_t items, int64_t tasks, int64_t task) {
  return {task * items / tasks, (task + 1) * items / tasks};
}

// for_each_range(executor, items, tasks, [&](int64_t begin, int64_t end) { ... }): parallel_for over those ranges. A kernel
// that keeps something for each task or worker calls the two itself.
template <class Work>
void for_each_range(Executor& executor, int64_t items, int64_t tasks, Work&& work) {
  parallel_for(executor, static_cast<int>(tasks), [&](int task, int) {
    const ItemRange range = task_range(items, tasks, task);
    work(range.begin, range.end);
  });
}

}  // namespace sparkle
