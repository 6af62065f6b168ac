// AnyRecord: one record (base/record.h) of any type, held by value. What std::any is, for records: they print and compare. Who
// holds one needs no list of the types that it may be, so that types can come and go without those who pass them on.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "base/record.h"

namespace sparkle {

// What a held record's type can do. Users of AnyRecord derive theirs from it, with a static member `of<R>` per record type,
// whose address names the type.
struct RecordType {
  void* (*copy)(const void*);
  void (*destroy)(void*);
  bool (*equal)(const void*, const void*);
  std::string (*text)(const void*);
};

template <class R>
constexpr RecordType record_type() {
  return {[](const void* from) -> void* { return new R(*static_cast<const R*>(from)); },
          [](void* record) { delete static_cast<R*>(record); },
          [](const void* a, const void* b) { return *static_cast<const R*>(a) == *static_cast<const R*>(b); },
          [](const void* record) { return to_text(*static_cast<const R*>(record)); }};
}

template <std::derived_from<RecordType> Type>
class AnyRecord {
 public:
  AnyRecord() = default;
  AnyRecord(const AnyRecord& from) : type_(from.type_), record_(from.record_ ? type_->copy(from.record_) : nullptr) {}
  AnyRecord(AnyRecord&& from) noexcept : type_(from.type_), record_(std::exchange(from.record_, nullptr)) {}
  AnyRecord& operator=(AnyRecord from) noexcept {
    std::swap(type_, from.type_), std::swap(record_, from.record_);
    return *this;
  }
  ~AnyRecord() {
    if (record_) type_->destroy(record_);
  }

  // nullptr where nothing is held.
  const Type* type() const { return record_ ? type_ : nullptr; }
  const void* record() const { return record_; }
  void* record() { return record_; }
  friend bool operator==(const AnyRecord& a, const AnyRecord& b) {
    return a.type() == b.type() && (!a.record_ || a.type_->equal(a.record_, b.record_));
  }
  std::string text() const { return record_ ? type_->text(record_) : std::string(); }

 protected:
  template <class R>
  AnyRecord(const Type& type, R&& record) : type_(&type), record_(new std::decay_t<R>(std::forward<R>(record))) {}

 private:
  const Type* type_ = nullptr;
  void* record_ = nullptr;
};

// As those of std::variant: nullptr, or std::bad_cast, where another type is held.
template <class R, class Type>
const R* get_if(const AnyRecord<Type>* any) {
  return any && any->type() == &Type::template of<R> ? static_cast<const R*>(any->record()) : nullptr;
}
template <class R, class Type>
R* get_if(AnyRecord<Type>* any) {
  return any && any->type() == &Type::template of<R> ? static_cast<R*>(any->record()) : nullptr;
}
template <class R, class Type>
bool holds(const AnyRecord<Type>& any) {
  return any.type() == &Type::template of<R>;
}
template <class R, class Type>
const R& get(const AnyRecord<Type>& any) {
  if (!holds<R>(any)) throw std::bad_cast();
  return *static_cast<const R*>(any.record());
}
template <class R, class Type>
R& get(AnyRecord<Type>& any) {
  if (!holds<R>(any)) throw std::bad_cast();
  return *static_cast<R*>(any.record());
}

}  // namespace sparkle
