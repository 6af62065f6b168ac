// What somebody may take for an ONNX model: addresses, folders, files of other tools, pages saved instead of a download. Each
// gets an error that says what it is and what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace sparkle {

// Addresses, and "~", which a shell alone knows, where nothing of that name is there. Errors: file_unreadable.
std::optional<Error> no_path(const std::string& path);

// A path that cannot be a model, by itself or by what lies there: a URL, a folder, "~", nothing. Errors: file_unreadable.
std::optional<Error> no_model_file(const std::string& path);

// Bytes that other tools wrote, by their first ones; after that by the name's ending, for what `read` said bad_format of.
// `name`: the path, or what errors call the bytes. Errors: bad_format.
std::optional<Error> foreign_model(std::span<const std::byte> bytes, const std::string& name);
std::optional<Error> foreign_ending(const std::string& name);

}  // namespace sparkle
