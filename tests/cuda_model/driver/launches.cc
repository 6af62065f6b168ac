// Modules, functions, launches and graphs, as libcuda.so.1 exports them.
#include <cstring>

#include "calls.h"

namespace cuda_model::driver {
namespace {

// What kernels read comes by `params`; the other way is one or the other, and the model has none of it.
bool by_params_alone(void** extra) {
  if (extra) tell("a launch with `extra`, which the model has none of");
  return extra == nullptr;
}

// What a launch asks for, checked against the device and the kernel.
CuResult prepare(Driver& driver, Context& context, Function* function, const unsigned* grid, const unsigned* block,
                 unsigned shared, void** params, KernelLaunch& launch) {
  if (!function || function->owner != &context) {
    tell("a function of another context");
    return CuResult::invalid_handle;
  }
  const Kernel& kernel = *function->kernel;
  const std::string name = kernel.name;
  const auto refused = [&](const std::string& why) {
    tell(name + ": " + why);
    return CuResult::invalid_value;
  };
  for (int i = 0; i < 3; ++i)
    if (grid[i] == 0 || block[i] == 0) return refused("a launch of no blocks or no threads");
  if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535) return refused("a grid that is too large");
  const unsigned threads = block[0] * block[1] * block[2];
  if (threads > static_cast<unsigned>(kernel.threads))
    return refused(std::to_string(threads) + " threads, and it is bound to " + std::to_string(kernel.threads));
  if (shared > static_cast<unsigned>(function->most_shared))
    return refused(std::to_string(shared) + " bytes of shared memory that it was not given");
  (void)driver;
  if (!params || !params[0]) return refused("no record");
  launch.kernel = &kernel;
  launch.how.grid = {grid[0], grid[1], grid[2]};
  launch.how.block = {block[0], block[1], block[2]};
  launch.how.shared_bytes = shared;
  const size_t align = std::max<size_t>(64, kernel.record_alignment), bytes = (kernel.record_bytes + align - 1) / align * align;
  launch.record = std::shared_ptr<std::byte>(static_cast<std::byte*>(std::aligned_alloc(align, bytes)), std::free);
  std::memcpy(launch.record.get(), params[0], kernel.record_bytes);
  return CuResult::success;
}

CuResult set_cluster(const Function& function, const CuLaunchAttributeValue& value, KernelLaunch& launch) {
  const unsigned size[3] = {value.cluster.x, value.cluster.y, value.cluster.z};
  const unsigned grid[3] = {launch.how.grid.x, launch.how.grid.y, launch.how.grid.z};
  unsigned blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (size[i] == 0 || grid[i] % size[i] != 0) {
      tell(std::string(launch.kernel->name) + ": clusters that do not divide its grid");
      return CuResult::invalid_value;
    }
    blocks *= size[i];
  }
  if (blocks > (function.large_clusters ? 16u : 8u)) return CuResult::invalid_value;
  launch.how.cluster = {size[0], size[1], size[2]};
  return CuResult::success;
}

}  // namespace
}  // namespace cuda_model::driver

using namespace cuda_model::driver;

EXPORT cuModuleLoadData(CuModule* module, const void* image) {
  MODEL_CALL("cuModuleLoadData", true);
  MODEL_NEEDS(image, CuResult::invalid_value);
  const auto& device = call.driver.devices[static_cast<size_t>(call.context->device)].attributes;
  const int capability =
      10 * device.at(CuDeviceAttribute::compute_capability_major) + device.at(CuDeviceAttribute::compute_capability_minor);
  std::vector<const cuda_model::Kernel*> compiled;
  if (const CuResult r = load_compiled(static_cast<const char*>(image), capability, compiled); r != CuResult::success) return r;
  auto& m = call.context->modules.emplace_back(std::make_unique<Module>());
  m->owner = call.context, m->compiled = std::move(compiled);
  *module = reinterpret_cast<CuModule>(m.get());
  return CuResult::success;
}
EXPORT cuModuleUnload(CuModule module) {
  MODEL_CALL("cuModuleUnload", true);
  std::erase_if(call.context->modules, [&](const auto& m) { return m.get() == real<Module>(module); });
  return CuResult::success;
}
EXPORT cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  MODEL_CALL("cuModuleGetFunction", true);
  const auto& own = real<Module>(module)->compiled;
  const auto is_it = [&](const cuda_model::Kernel* k) { return std::string_view(k->name) == name; };
  const auto at = std::find_if(own.begin(), own.end(), is_it);
  const cuda_model::Kernel* kernel = at != own.end() ? *at : own.empty() ? cuda_model::find_kernel(name) : nullptr;
  MODEL_NEEDS(kernel, CuResult::not_found);
  auto& f = real<Module>(module)->functions[name];
  if (!f) {
    f = std::make_unique<Function>();
    f->owner = call.context, f->kernel = kernel;
  }
  *function = reinterpret_cast<CuFunction>(f.get());
  return CuResult::success;
}
EXPORT cuFuncGetAttribute(int* value, CuFunctionAttribute attribute, CuFunction function) {
  MODEL_CALL("cuFuncGetAttribute", true);
  const Function& f = *real<Function>(function);
  *value = attribute == CuFunctionAttribute::max_threads_per_block           ? f.kernel->threads
           : attribute == CuFunctionAttribute::max_dynamic_shared_size_bytes ? f.most_shared
                                                                             : 0;
  return CuResult::success;
}
EXPORT cuFuncSetAttribute(CuFunction function, CuFunctionAttribute attribute, int value) {
  MODEL_CALL("cuFuncSetAttribute", true);
  Function& f = *real<Function>(function);
  if (attribute == CuFunctionAttribute::max_dynamic_shared_size_bytes) {
    const auto& device = call.driver.devices[static_cast<size_t>(f.owner->device)];
    if (value < 0 || value > device.attributes.at(CuDeviceAttribute::max_shared_memory_per_block_optin)) {
      tell(std::string(f.kernel->name) + ": " + std::to_string(value) +
           " bytes of shared memory are more than a block may have");
      return CuResult::invalid_value;
    }
    f.most_shared = value;
  } else if (attribute == CuFunctionAttribute::non_portable_cluster_size_allowed) {
    f.large_clusters = value != 0;
  } else {
    return CuResult::invalid_value;
  }
  return CuResult::success;
}

EXPORT cuLaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** params, void** extra) {
  MODEL_CALL("cuLaunchKernelEx", true);
  MODEL_NEEDS(owns(*call.context, real<Stream>(config->stream)), CuResult::invalid_handle);
  MODEL_NEEDS(by_params_alone(extra), CuResult::invalid_value);
  Work work(Work::Kind::launch);
  auto* f = real<Function>(function);
  CuResult r = prepare(call.driver, *call.context, f, config->grid, config->block, config->shared_bytes, params, work.launch);
  const auto& device = call.driver.devices[static_cast<size_t>(call.context->device)];
  for (unsigned i = 0; i < config->attribute_count && r == CuResult::success; ++i) {
    const CuLaunchAttribute& a = config->attributes[i];
    if (a.id == CuLaunchAttributeId::cluster_dimension) {
      r = set_cluster(*f, a.value, work.launch);
    } else if (a.id == CuLaunchAttributeId::programmatic_stream_serialization) {
      // Work of a stream is done one piece after another here: one of the orders that it allows.
      if (device.attributes.at(CuDeviceAttribute::compute_capability_major) < 9) r = CuResult::not_supported;
    } else if (a.id != CuLaunchAttributeId::ignore) {
      tell(work.launch.kernel->name + std::string(": an attribute that is not known, ") +
           std::to_string(static_cast<int>(a.id)));
      r = CuResult::invalid_value;
    }
  }
  if (r == CuResult::success) real<Stream>(config->stream)->waiting.push_back(std::move(work));
  return r;
}

EXPORT cuGraphCreate(CuGraph* graph, unsigned) {
  MODEL_CALL("cuGraphCreate", true);
  auto& g = call.context->graphs.emplace_back(std::make_shared<Graph>());
  *graph = reinterpret_cast<CuGraph>(g.get());
  return CuResult::success;
}
EXPORT cuGraphDestroy(CuGraph graph) {
  MODEL_CALL("cuGraphDestroy", true);
  std::erase_if(call.context->graphs, [&](const auto& g) { return g.get() == real<Graph>(graph); });
  return CuResult::success;
}
EXPORT cuGraphAddKernelNode_v2(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                               const CuKernelNodeParams* params) {
  MODEL_CALL("cuGraphAddKernelNode_v2", true);
  Graph& g = *real<Graph>(graph);
  MODEL_NEEDS(by_params_alone(params->extra), CuResult::invalid_value);
  if (!params->function) {
    tell(params->kernel ? "a kernel that is given by no function, which the model has none of" : "a node of no kernel");
    return params->kernel ? CuResult::not_supported : CuResult::invalid_value;
  }
  auto fresh = std::make_unique<GraphNode>();
  const CuResult r = prepare(call.driver, *call.context, real<Function>(params->function), params->grid, params->block,
                             params->shared_bytes, params->params, fresh->launch);
  MODEL_NEEDS(r == CuResult::success, r);
  fresh->function = real<Function>(params->function);
  for (size_t i = 0; i < count; ++i) {
    const auto at =
        std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == real<GraphNode>(after[i]); });
    MODEL_NEEDS(at != g.nodes.end(), CuResult::invalid_value);
    const auto place = static_cast<size_t>(at - g.nodes.begin());
    if (std::count(fresh->after.begin(), fresh->after.end(), place) > 0) {
      tell(std::string(fresh->launch.kernel->name) + ": a node that depends on another one twice");
      return CuResult::invalid_value;
    }
    fresh->after.push_back(place);
  }
  *node = reinterpret_cast<CuGraphNode>(fresh.get());
  g.nodes.push_back(std::move(fresh));
  return CuResult::success;
}
EXPORT cuGraphKernelNodeSetAttribute(CuGraphNode node, CuLaunchAttributeId attribute, const CuLaunchAttributeValue* value) {
  MODEL_CALL("cuGraphKernelNodeSetAttribute", true);
  MODEL_NEEDS(attribute == CuLaunchAttributeId::cluster_dimension, CuResult::invalid_value);
  GraphNode& n = *real<GraphNode>(node);
  return set_cluster(*n.function, *value, n.launch);
}
EXPORT cuGraphAddDependencies_v2(CuGraph graph, const CuGraphNode* from, const CuGraphNode* to, const CuGraphEdge* edges,
                                 size_t count) {
  MODEL_CALL("cuGraphAddDependencies_v2", true);
  Graph& g = *real<Graph>(graph);
  const auto place_of = [&](CuGraphNode node) {
    return static_cast<size_t>(
        std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == real<GraphNode>(node); }) -
        g.nodes.begin());
  };
  const auto& device = call.driver.devices[static_cast<size_t>(call.context->device)];
  for (size_t i = 0; i < count; ++i) {
    const CuGraphEdge edge = edges ? edges[i] : CuGraphEdge{};
    const bool early = edge.type == kEdgeProgrammatic;
    MODEL_NEEDS(place_of(from[i]) < place_of(to[i]) && place_of(to[i]) < g.nodes.size(), CuResult::invalid_value);
    MODEL_NEEDS(edge.to_port == 0 && edge.type <= kEdgeProgrammatic, CuResult::invalid_value);
    MODEL_NEEDS(edge.from_port <= kPortLaunchOrder && early == (edge.from_port != 0), CuResult::invalid_value);
    for (const unsigned char byte : edge.reserved) MODEL_NEEDS(byte == 0, CuResult::invalid_value);
    MODEL_NEEDS(!early || device.attributes.at(CuDeviceAttribute::compute_capability_major) >= 9, CuResult::not_supported);
    GraphNode& node = *real<GraphNode>(to[i]);
    MODEL_NEEDS(std::count(node.after.begin(), node.after.end(), place_of(from[i])) == 0, CuResult::invalid_value);
    node.after.push_back(place_of(from[i]));
    node.early = node.early || early;
  }
  return CuResult::success;
}
EXPORT cuGraphInstantiateWithFlags(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  MODEL_CALL("cuGraphInstantiateWithFlags", true);
  auto nodes = std::make_shared<std::vector<GraphNode>>();
  for (const auto& n : real<Graph>(graph)->nodes) nodes->push_back(*n);
  ++call.driver.counts.graphs;
  *exec = reinterpret_cast<CuGraphExec>(nodes.get());
  call.context->execs.push_back(std::move(nodes));
  return CuResult::success;
}
EXPORT cuGraphLaunch(CuGraphExec exec, CuStream stream) {
  MODEL_CALL("cuGraphLaunch", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)), CuResult::invalid_handle);
  for (const auto& e : call.context->execs)
    if (e.get() == real<std::vector<GraphNode>>(exec)) {
      Work work(Work::Kind::graph);
      work.graph = e;
      of(*call.context, stream)->waiting.push_back(std::move(work));
      return CuResult::success;
    }
  tell("a graph that is gone");
  return CuResult::invalid_handle;
}
EXPORT cuGraphExecDestroy(CuGraphExec exec) {
  MODEL_CALL("cuGraphExecDestroy", true);
  std::erase_if(call.context->execs, [&](const auto& e) { return e.get() == real<std::vector<GraphNode>>(exec); });
  return CuResult::success;
}
