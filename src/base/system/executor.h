// Executor: where parallel work runs. Sparkle's own ThreadPool is one; a program may hand in a pool of its own.
#pragma once

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

}  // namespace sparkle
