#include "backends/vulkan/shaders/shader_text.h"

#include <optional>

namespace sparkle::vulkan {
namespace {

struct Source {
  std::string_view name, text;
};
constexpr Source kSources[] = {
#include "glsl_sources.inc"
};

std::string_view source_named(std::string_view name) {
  for (const Source& s : kSources)
    if (s.name == name) return s.text;
  return {};
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

// "-DWIDTH=4 -DVALUE=vec4" of the line "// build: SHADER -DWIDTH=4 -DVALUE=vec4", where the file has one.
std::optional<std::string_view> options_of(std::string_view text, std::string_view shader) {
  constexpr std::string_view kBuild = "// build: ";
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (!line.starts_with(kBuild)) continue;
    line.remove_prefix(kBuild.size());
    const size_t end = std::min(line.find(' '), line.size());
    if (line.substr(0, end) == shader) return line.substr(end);
  }
  return std::nullopt;
}

std::string definitions(std::string_view options) {
  std::string text;
  for (size_t at = options.find("-D"); at != std::string_view::npos; at = options.find("-D", at + 2)) {
    std::string_view macro = options.substr(at + 2);
    macro = macro.substr(0, macro.find(' '));
    const size_t equals = macro.find('=');
    text += "#define " + std::string(macro.substr(0, equals)) + " " +
            (equals == std::string_view::npos ? "1" : std::string(macro.substr(equals + 1))) + "\n";
  }
  return text;
}

// Files without a text of their own come out empty, and do not compile.
void append_flat(std::string& to, std::string_view text, std::string_view post_op, const std::string& front) {
  constexpr std::string_view kInclude = "#include \"";
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.starts_with(kInclude)) {
      const std::string_view name = line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
      if (name == "post_op.glsl") to += post_op;
      else append_flat(to, source_named(name), post_op, front);
      continue;
    }
    to.append(line).append("\n");
    if (line.starts_with("#version")) to += front;
  }
}

}  // namespace

Result<std::string> shader_text(std::string_view shader, std::string_view post_op) {
  for (const Source& s : kSources) {
    if (!s.name.ends_with(".comp")) continue;
    const auto options = options_of(s.text, shader);
    if (!options) continue;
    std::string text;
    append_flat(text, s.text, post_op, "#extension GL_EXT_spirv_intrinsics : require\n" + definitions(*options));
    return text;
  }
  return Error{Reason::internal, "There is no text of the shader '" + std::string(shader) + "'; please report it."};
}

}  // namespace sparkle::vulkan
