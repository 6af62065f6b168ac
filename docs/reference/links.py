"""Links of a folder of pages that lead nowhere in it: broken(FOLDER) gives a sentence for each. Other sites are not asked."""
import pathlib
import urllib.parse
from html.parser import HTMLParser


class Page(HTMLParser):
    """The names that can be jumped to, and the links with their lines."""

    def __init__(self):
        super().__init__()
        self.names, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names.update(n for n in (given.get("id"), given.get("name") if tag == "a" else None) if n)
        if tag in ("a", "link", "script", "img"):
            target = given.get("href") if tag in ("a", "link") else given.get("src")
            if target:
                self.links.append((self.getpos()[0], target))


def broken(folder):
    folder = pathlib.Path(folder).resolve()
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        for line, link in page.links:
            place = urllib.parse.urlsplit(link)
            if place.scheme or place.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(place.path)).resolve() if place.path else path
            said = f"{path.relative_to(folder)}:{line}: the link '{link}'"
            if not target.exists() or folder not in target.parents:
                yield f"{said} leads to no file"
            elif place.fragment and target in pages and urllib.parse.unquote(place.fragment) not in pages[target].names:
                yield f"{said} names no place on its page"
