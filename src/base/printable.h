// Names and texts from outside on their way to a terminal: nothing in them steers it, forges a line or fills it.
#pragma once

#include <string>
#include <string_view>

namespace sparkle {

// Control characters, bytes that are no UTF-8, and characters that are invisible or turn the direction of writing come as
// \x1b or \u{202e}; of more than `most` bytes the middle is left out and its length told.
std::string printable(std::string_view name, size_t most = 200);

// The same for a sentence that holds such names: each word or quoted name of more than 400 bytes loses its middle. Line ends
// stay where the next line is indented, as that of an expression with the place of an error under it.
std::string printable_sentence(std::string_view sentence);

// The same for whole lines of text, of which nothing is left out.
std::string printable_lines(std::string_view text);

}  // namespace sparkle
