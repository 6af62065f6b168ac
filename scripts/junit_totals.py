#!/usr/bin/env python3
"""Totals of a ctest JUnit file: each failure and each reason for skipping, then 'N passed, N failed, N skipped'."""
import collections
import re
import sys
import xml.etree.ElementTree


def skip_reason(case):
    """The sentence a test gave to GTEST_SKIP(): the line after GoogleTest's 'file:line: Skipped'."""
    found = re.search(r":\d+: Skipped\n(.+)", case.findtext("system-out") or "")
    return found[1].strip() if found else "no reason given"


def main():
    passed = failed = 0
    skipped = collections.Counter()
    for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
        if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped[skip_reason(case)] += 1
        elif case.find("failure") is not None or case.get("status") == "fail":
            failed += 1
            print(f"FAILED  {case.get('name')}")
            lines = (case.findtext("system-out") or "").strip().splitlines()
            for line in [line for line in lines if not re.match(r"\[|Note: |Running main|$", line)][:12]:
                print(f"        {line[:200]}")
        else:
            passed += 1
    for reason, count in skipped.most_common():
        print(f"SKIP  {count} tests: {reason}")
    print(f"{passed} passed, {failed} failed, {sum(skipped.values())} skipped")


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv[1:]):
        raise SystemExit(print(__doc__))
    main()
